"""Solvers, one algorithm per file; call them through `rowsep.packing.solve`."""
