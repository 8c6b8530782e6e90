"""Linear machines by interior points: batched, compiled, in Triton."""
