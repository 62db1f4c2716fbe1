"""How far rows of real momenta part under an alignment floor, and in how many passes."""
