"""Margin against the cost of columns, after Carrizosa et al."""
