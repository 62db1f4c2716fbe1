"""Small clouds to the last digit: many starts, an interior-point method, Newton in 60 digits."""
