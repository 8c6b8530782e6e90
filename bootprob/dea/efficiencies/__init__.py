"""Efficiencies of units: scores, weights, certificates, intervals."""
