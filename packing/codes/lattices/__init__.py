"""Pieces of lattices: minimal vectors, the points in a ball, boxes of the integer grid."""
