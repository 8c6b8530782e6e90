"""Kernel-target alignment, Tamura et al."""
