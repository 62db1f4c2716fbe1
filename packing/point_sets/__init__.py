"""Few points of R^d: searches for the least diameter and for spherical codes, and the records."""
