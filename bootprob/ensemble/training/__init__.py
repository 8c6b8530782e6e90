"""Shards of the ensemble trained, scheduled, checkpointed and summed out of bag."""
