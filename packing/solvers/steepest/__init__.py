"""Steepest steps of full vocabularies and of small heads, on flows over pairs of rows."""
