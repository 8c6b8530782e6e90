"""The fastest launch shapes of this GPU: `make gpu-tune`."""
