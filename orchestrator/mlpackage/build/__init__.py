"""Makes stateful packages from a seed: the same recipe gives the same bytes on every host."""
