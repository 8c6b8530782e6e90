"""What an H100 is predicted to take, from counts: `make gpu-roofline`."""
