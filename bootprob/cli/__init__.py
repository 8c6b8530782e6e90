"""The command line ``bootprob``: a module a command."""
