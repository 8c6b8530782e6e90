"""Columns chosen by alignment, after Tamura et al."""
