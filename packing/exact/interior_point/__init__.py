"""Interior-point methods over batches of small problems, for clouds and for spherical codes."""
