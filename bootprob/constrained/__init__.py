"""Support vector machines under constraints on their rates, thesis chapter 2."""
