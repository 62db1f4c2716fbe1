"""All results on one page: `python -m experiments.report` writes one HTML file."""
