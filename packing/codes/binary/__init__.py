"""Codes of signs: from quadratic forms over the field of two elements, and the Golay code."""
