"""Scores and votes of new rows."""
