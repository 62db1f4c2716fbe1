"""From a whole language model to one optimiser: who serves which parameter."""
