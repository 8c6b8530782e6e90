"""Kernels: what is asked of one, one module each, and their names."""
