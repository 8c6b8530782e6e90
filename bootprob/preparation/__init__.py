"""From a table of numbers and labels to what machines are trained on."""
