"""rehline as it comes, which stops after 1,000 iterations."""

from __future__ import annotations

from functools import partial

from gpu.benchmarks.peers import rehline

NAME = "rehline, default iterations"
DISTRIBUTION = rehline.DISTRIBUTION
NOTE = "As above, stopped by default after 1,000 iterations whether or not it has converged."
SAME_PROBLEM = rehline.SAME_PROBLEM
OWN_THREADS = rehline.OWN_THREADS

solves, prepare, answer = rehline.solves, rehline.prepare, rehline.answer
solve = partial(rehline.solve, iterations=1_000)
