"""What a fitted ensemble is asked, a subject a module: the methods that users call."""
