"""Rules about packages: each is tied to a failure that somebody met, and to its source."""
