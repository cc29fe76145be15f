"""`fleet calibrate`: what a phone does at its limit, read from short runs with ballast to death."""
