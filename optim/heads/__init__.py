"""One optimiser a file for the matrix with a row per token, over the rules of `updates`."""
