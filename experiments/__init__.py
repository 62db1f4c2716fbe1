"""Reproducible experiments: each folder makes one claim, with its command and committed results."""
