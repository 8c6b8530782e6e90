"""Probabilities beside those of other packages' calibrators."""
