"""Training loops and trainers with `rowsep.optim.for_language_model`, each a minute or less on a
CPU."""
