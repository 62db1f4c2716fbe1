"""How good the packings are, and what they cost, over V and d."""
