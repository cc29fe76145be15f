"""How many of a thing there are, as a person says it."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return `1 trim`, `1,234 trims`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
