"""Columns within a budget that keep rates, thesis chapter 4."""
