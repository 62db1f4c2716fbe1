"""The momentum that ships with the package: how it is trained, rounded, written and described."""
