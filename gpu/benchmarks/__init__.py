"""How fast, beside peers: problems, timings, and what the pages of docs say of them."""
