"""CVXPY and the mixed-integer solvers, all optional, and what a search for a subset returns."""
