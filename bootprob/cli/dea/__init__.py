"""The commands of ``bootprob dea``: benchmarking of decision-making units."""
