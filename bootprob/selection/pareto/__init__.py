"""Margin against cost of measurement, Carrizosa et al."""
