"""Spherical codes that others published, found from random starts and met by explicit codes."""
