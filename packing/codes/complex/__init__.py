"""Codes of complex phases, written as real rows: chirps, Weil sums and the Paley graph."""
