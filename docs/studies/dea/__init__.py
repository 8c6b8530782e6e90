"""Outputs selected on a panel of the thesis's size."""
