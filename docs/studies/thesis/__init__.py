"""Maldonado's thesis, chapters 2 to 4."""
