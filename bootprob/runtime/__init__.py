"""How work runs: files complete or absent, a progress bar, blocks of rows, others' arrays."""
