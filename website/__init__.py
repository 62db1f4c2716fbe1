"""What builds the documentation site: formulas, results and the hooks of Sphinx."""
