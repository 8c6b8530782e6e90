"""Memory, threads, CUDA graphs and streams, compiled code and when it can be had."""
