"""Thresholds that make rates hold: Ctrl1, thesis 3.2.2."""
