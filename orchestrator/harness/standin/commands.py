"""Commands of the control protocol: from a line to its answer (docs/protocol.md, 2). No I/O."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.harness.standin.fields import FieldError, Fields

if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOL: Final = 1
MOST_COMMAND_BYTES: Final = 1024 * 1024
_MOST_ID: Final = (1 << 63) - 1


class Desk(Protocol):
    """The app as commands see it."""

    def identity(self) -> dict[str, object]:
        """Return app, pid, launch, started and seq."""

    def status(self) -> dict[str, object]:
        """Return started, seq, tokens_total and phase."""

    def start(self, command: Fields) -> bool:
        """Start the soak; return False where it was started before.

        Raises:
            FieldError: If the command cannot be read.
        """

    def offset_after(self, launch: str, seq: int) -> int | None:
        """Return where record `seq + 1` begins in the journal, None for another launch.

        Raises:
            ValueError: If there is no record `seq`.
        """

    def stop(self) -> None:
        """End the soak."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a line leads to."""

    reply: dict[str, object] | None  # None: nothing is answered
    stream_from: int | None = None  # byte of the journal from which records are sent
    closes: bool = False
    admits: bool = False  # the client has shown the token


class Clerk:
    """Answers the lines of one client."""

    def __init__(self, desk: Desk, token: str) -> None:
        self._desk, self._token = desk, token.encode()
        self._admitted = False

    def answer(self, line: bytes) -> Answer:
        """Return the answer to one line."""
        try:
            command = Fields(json.loads(line), "command")
        except (ValueError, RecursionError):
            return self._refuse_command(None)
        try:
            number = command.integer("id", -_MOST_ID, _MOST_ID)
        except FieldError:
            return self._refuse_command(None)
        try:
            return self._dispatch(number, command)
        except FieldError:
            return self._refuse_command(number)

    def _refuse_command(self, number: int | None) -> Answer:
        if not self._admitted:
            return Answer(None)
        return Answer({"reply": "error", "id": number, "ok": False, "error": "command"})

    def _dispatch(self, number: int, command: Fields) -> Answer:
        name = command.text("command")
        if name == "hello":
            return self._hello(number, command)
        handlers: dict[str, Callable[[int, Fields], Answer]] = {
            "start": self._start,
            "resume": self._resume,
            "stop": self._stop,
            "status": self._status,
        }
        if not self._admitted or name not in handlers:
            return self._refuse_command(number)
        return handlers[name](number, command)

    def _hello(self, number: int, command: Fields) -> Answer:
        if not hmac.compare_digest(command.text("token").encode(), self._token):
            return Answer(_refusal("hello", number, "token"), closes=True)
        self._admitted = True
        return Answer(
            _acceptance("hello", number, protocol=PROTOCOL, **self._desk.identity()), admits=True
        )

    def _start(self, number: int, command: Fields) -> Answer:
        try:
            started = self._desk.start(command)
        except FieldError as error:
            return Answer(_refusal("start", number, "scenario", message=str(error)))
        if not started:
            return Answer(_refusal("start", number, "started"))
        return Answer(_acceptance("start", number), stream_from=0)

    def _resume(self, number: int, command: Fields) -> Answer:
        seq = command.integer("seq", 0, _MOST_ID)
        try:
            offset = self._desk.offset_after(command.text("launch"), seq)
        except ValueError:
            return self._refuse_command(number)
        if offset is None:
            return Answer(_refusal("resume", number, "launch"))
        return Answer(_acceptance("resume", number), stream_from=offset)

    def _stop(self, number: int, _: Fields) -> Answer:
        self._desk.stop()
        return Answer(_acceptance("stop", number))

    def _status(self, number: int, _: Fields) -> Answer:
        return Answer(_acceptance("status", number, **self._desk.status()))


def _acceptance(command: str, number: int, **facts: object) -> dict[str, object]:
    return {"reply": command, "id": number, "ok": True, **facts}


def _refusal(command: str, number: int, error: str, **facts: object) -> dict[str, object]:
    return {"reply": command, "id": number, "ok": False, "error": error, **facts}
