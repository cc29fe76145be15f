"""The text of a turn as a person sees it: whole characters only (docs/protocol.md, 3.1)."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Final

from orchestrator.domain.mixing import text_piece

TEXTS: Final = ("decimal", "pieces")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a sample adds to the view."""

    text: str  # whole characters
    byte_count: int  # that the sample gave, shown or held back


class TextView:
    """The view of one turn."""

    def __init__(self, kind: str, end_id: int) -> None:
        """Show nothing yet.

        Args:
            kind: Which text an id has, one of `TEXTS`.
            end_id: The token that gives no text.
        """
        self._pieces = kind == "pieces"
        self._end_id = end_id
        self._place = 0
        # "replace" never comes to bear: pieces are valid and digits are ASCII.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(self, token: int) -> Shown:
        """Show the next sample of the turn."""
        piece = b"" if token == self._end_id else self._piece(token)
        self._place += 1
        return Shown(self._decoder.decode(piece), len(piece))

    def _piece(self, token: int) -> bytes:
        return text_piece(token, self._place) if self._pieces else str(token).encode()

    @property
    def held_bytes(self) -> int:
        """Bytes of a character that is not whole yet."""
        return len(self._decoder.getstate()[0])
