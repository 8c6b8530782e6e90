"""What an installation takes: space, time to start, and for what torch is needed."""
