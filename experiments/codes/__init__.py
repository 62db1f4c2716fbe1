"""Explicit configurations: how near the bound, against solvers, and as starts of solvers."""
