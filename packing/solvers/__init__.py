"""Solvers, one algorithm per file; call them through `packing.solve`."""
