"""Whether a soak could start now: checks of host and phones, each with reason and remedy."""
