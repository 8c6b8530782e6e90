"""Report of a benchmarking study."""
