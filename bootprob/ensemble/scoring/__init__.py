"""Rows through the trained machines: scores, votes and their moments."""
