"""Check that somebody listens to memory warnings before memory is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.runlog.telemetry import AnyRecord, Handler, Hello, Prefill, State, Tokens
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing


class EvictHandlerFirst(Check):
    """The warning handler is registered after the load and before the first state."""

    info = CheckInfo(
        id="evict.handler-first",
        title="The warning handler is there before the first prediction",
        meaning=(
            "In each launch a registered handler is on record before the first state is made and"
            " the first prediction runs: a warning that comes earlier is heard by nobody."
        ),
        causes=(
            "the handler is registered with the first view instead of the model",
            "the handler is registered lazily at the first trim",
            "the observer is released right after it was registered",
        ),
        what_to_do=("register for the warning before the model is loaded, and keep the observer",),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._channels: list[str] = []
        self._registered = False
        self._blamed = False  # this launch was

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._registered = self._blamed = False
            case Handler():
                self._on_handler(record)
            case State(action="made") | Prefill() | Tokens():
                self._on_use(record)
            case _:
                pass

    def _on_handler(self, record: Handler) -> None:
        if not record.registered:
            self.faults.add(record, f"the handler of channel {record.channel} was not registered")
            self._blamed = True
            return
        self._registered = True
        if record.channel not in self._channels and len(self._channels) < _MOST_CHANNELS:
            self._channels.append(record.channel)

    def _on_use(self, record: State | Prefill | Tokens) -> None:
        if not self._registered and not self._blamed:
            self.faults.add(record, "the model is used and no warning handler is registered")
            self._blamed = True

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value names the channels that are listened to."""
        if self.faults.count:
            return self.failed(self.faults.count, "launches with a late handler", 0)
        if not self._registered:
            return self.unmeasured("no handler is on record and nothing was predicted")
        return self.passed(", ".join(self._channels), None)


_MOST_CHANNELS = 8
