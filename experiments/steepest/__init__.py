"""The steepest step of real momenta: value, certified gap and passes."""
