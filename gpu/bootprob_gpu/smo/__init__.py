"""Dual machines by sequential minimal optimisation: batched, compiled, in Triton."""
