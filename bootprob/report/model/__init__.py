"""Report and card of fitted models."""
