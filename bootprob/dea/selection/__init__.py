"""Which outputs to judge units by: jointly, each its own, and as a game."""
