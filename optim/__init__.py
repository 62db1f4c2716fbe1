"""Optimisers for language-model heads built on the packing solvers."""
