"""Texts of phones made harmless for a terminal and a page."""

from __future__ import annotations

from typing import Final

LONGEST_CHARACTERS: Final = 200


def printable(text: str) -> str:
    """Return one short line without controls, escapes and marks that turn the direction of text.

    Unassigned, surrogate and format characters go as well: a terminal disagrees on their width.
    """
    shown = (char if char.isprintable() else " " for char in text[: 4 * LONGEST_CHARACTERS])
    return " ".join("".join(shown).split())[:LONGEST_CHARACTERS]
