"""All-pairs passes over the rows of a cloud; `impl=` chooses how, `"auto"` by default."""
