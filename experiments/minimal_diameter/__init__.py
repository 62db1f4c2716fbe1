"""The least known ratio of largest to smallest distance of n points, found from scratch."""
