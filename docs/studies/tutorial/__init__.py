"""The tutorial: its tables, the answers of its commands, and its pictures."""
