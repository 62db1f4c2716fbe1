"""Head optimisers on the frozen body of a pretrained model, at the size of its real head."""
