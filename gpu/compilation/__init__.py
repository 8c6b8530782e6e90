"""Every Triton kernel compiled ahead of time, without a GPU: `make gpu-compile`."""
