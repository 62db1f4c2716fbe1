"""Simplices and what is built of them, regular polytopes, and graphs of two distances."""
