"""Talks to running farms over their control sockets, for commands and for tests.

Blocking, with a deadline on every wait: a farm may hang.
"""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.errors import UsageError
from orchestrator.virtual.places import CONTROL_NAME, SOCKETS_PREFIX, SOCKETS_ROOT

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ANSWER_LIMIT_S: Final = 30.0  # a reboot takes seconds


class ControlError(UsageError):
    """No farm answers, several do, or one refuses."""


def running_controls() -> list[Path]:
    """Return the control sockets of this user's farms that answer, the oldest first."""
    found = Path(SOCKETS_ROOT).glob(f"{SOCKETS_PREFIX}*/{CONTROL_NAME}")
    sockets = [path for path in found if _answers(path)]
    return sorted(sockets, key=lambda path: path.stat().st_mtime)


def the_control() -> Path:
    """Return the control socket of the one farm that runs.

    Raises:
        ControlError: If none runs, or several do.
    """
    found = running_controls()
    if not found:
        raise ControlError("no virtual phones are served", remedy="Start fleet virtual serve")
    if len(found) > 1:
        names = ", ".join(map(str, found))
        raise ControlError(f"{len(found)} farms run: {names}", remedy="Choose one with --control")
    return found[0]


def ask(control: Path, **request: object) -> dict[str, Any]:
    """Send one request and return its answer.

    Raises:
        ControlError: If the farm does not answer or refuses.
    """
    with _connected(control) as connection, connection.makefile("rb") as lines:
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer: dict[str, Any] = json.loads(lines.readline() or b"{}")
    if not answer.get("ok"):
        raise ControlError(str(answer.get("error", f"{control} gave no answer")))
    return answer


def read_log(
    control: Path, since: int = 0, *, follow: bool = False
) -> Generator[dict[str, Any], None, None]:
    """Yield the events of a farm; with `follow` new ones too, until the farm ends.

    Raises:
        ControlError: If the farm does not answer.
    """
    request = {"do": "log", "since": since, "follow": follow}
    with _connected(control) as connection, connection.makefile("rb") as lines:
        connection.sendall(json.dumps(request).encode() + b"\n")
        if follow:
            connection.settimeout(None)
        for line in lines:
            event: dict[str, Any] = json.loads(line)
            if "event" in event:
                yield event
            else:
                return


def _answers(path: Path) -> bool:
    try:
        with _connected(path):
            return True
    except ControlError:
        return False


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_LIMIT_S)
        try:
            connection.connect(str(path))
            yield connection
        except (OSError, ValueError) as error:
            raise ControlError(f"{path} does not answer: {error}") from error
