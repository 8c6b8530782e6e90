"""Report of a scored table."""
