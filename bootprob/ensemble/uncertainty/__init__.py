"""Intervals of the probability itself: the true logit and a Gaussian process."""
