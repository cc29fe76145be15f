"""Check of the text that the view showed: whole characters, and those the tokens give."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from orchestrator.domain.mixing import text_piece
from orchestrator.runlog.telemetry import AnyRecord, Hello, Tokens, TurnEnd, TurnStart
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing

_REPLACEMENT: Final = "\ufffd"  # what a decoder shows for bytes that are no character
_COMPUTABLE: Final = frozenset({"decimal", "pieces"})


class StreamTextValid(Check):
    """The shown text is valid, and no byte of it is lost."""

    info = CheckInfo(
        id="stream.text-valid",
        title="The text shows whole characters only",
        meaning=(
            "What the view showed for each group of tokens is the characters their bytes complete,"
            " recomputed where the text of an id is known to the host; nothing shows as a"
            " replacement character, and bytes shown and held back add up to bytes given."
        ),
        causes=(
            "each token's bytes are decoded by themselves",
            "the decoder's state is reset between two updates of the view",
            "the incomplete end of a turn is shown",
        ),
        what_to_do=(
            "keep the bytes of an incomplete character back until the token that completes it",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._characters = 0
        self._text: str | None = None  # the text function of the launch
        self._end_ids: frozenset[int] = frozenset()
        self._begin_turn()

    def _begin_turn(self) -> None:
        self._place = 0  # of the next sample in its turn
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._given = self._shown = 0  # bytes

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._text, self._end_ids = record.text, frozenset(record.end_ids)
            case TurnStart():
                self._begin_turn()
            case Tokens() if record.text is not None:
                self._on_text(record, record.text)
            case TurnEnd() if self._shown:
                self._on_end(record)
            case _:
                pass

    def _on_text(self, record: Tokens, text: str) -> None:
        self._characters += len(text)
        self._given += record.text_bytes
        self._shown += len(text.encode("utf-8", "surrogatepass"))
        if self._text in _COMPUTABLE:
            self._recompute(record, text)
        elif _REPLACEMENT in text:
            self.faults.add(record, "a replacement character was shown")

    def _recompute(self, record: Tokens, text: str) -> None:
        data = b"".join(self._bytes_of(token) for token in record.ids)
        due = self._decoder.decode(data)
        if text != due:
            self.faults.add(record, f"the view showed {text!r} where {due!r} was due")
        elif record.text_bytes != len(data):
            self.faults.add(record, f"{record.text_bytes} bytes of text are claimed of {len(data)}")

    def _bytes_of(self, token: int) -> bytes:
        place, self._place = self._place, self._place + 1
        if token in self._end_ids:
            return b""
        return text_piece(token, place) if self._text == "pieces" else str(token).encode()

    def _on_end(self, record: TurnEnd) -> None:
        if self._given != self._shown + record.held_bytes:
            lost = self._given - self._shown - record.held_bytes
            self.faults.add(record, f"{lost} bytes of the turn's text were neither shown nor held")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of characters shown."""
        if self.faults.count:
            return self.failed(self.faults.count, "wrong texts", 0)
        if not self._characters:
            return self.unmeasured("no text is on record")
        return self.passed(self._characters, "characters")
