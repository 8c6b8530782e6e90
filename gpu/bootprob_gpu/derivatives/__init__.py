"""Derivatives of scores through the conditions of optimality."""

from bootprob_gpu.derivatives.kkt import differentiable_scores

__all__ = ["differentiable_scores"]
