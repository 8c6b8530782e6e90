"""What the promises measured: coverage of intervals, and tables of other pages."""
