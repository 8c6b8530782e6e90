"""A benchmarking study in one call, and the numbers of its figures."""
