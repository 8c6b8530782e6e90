"""Columns of several kinds, as data frames hold them, and the numbers that machines see."""
