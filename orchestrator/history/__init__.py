"""Runs and baselines in SQLite, and the comparison of like with like; derived, never evidence."""
