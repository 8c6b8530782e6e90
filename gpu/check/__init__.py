"""Is the engine right on this GPU, and how fast is it? `make gpu-check`."""
