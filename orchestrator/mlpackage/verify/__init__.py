"""Executes saved packages with NumPy and compares them with an independent forward."""
