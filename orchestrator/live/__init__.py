"""A run directory while it is written, as a person looks at it: on a terminal or in a browser."""
