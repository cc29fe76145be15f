"""What answers on an app's port in the app's place: bytes that no app sends."""

from __future__ import annotations

import asyncio
import random
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.virtual.wire import Stream

_PIECE_BYTES: Final = 1 << 16


class Imposture(StrEnum):
    """What the impostor sends, without end."""

    NOISE = "noise"  # random bytes, newlines among them
    ONE_LINE = "one_line"  # a line that never ends
    RECORDS = "records"  # records of a launch that nobody asked for


def impostor(imposture: Imposture, seed: int) -> Callable[[Stream], Awaitable[None]]:
    """Return a service that sends until the client leaves."""
    chance = random.Random(seed)  # noqa: S311 - no secret

    def piece(number: int) -> bytes:
        if imposture is Imposture.NOISE:
            return chance.randbytes(_PIECE_BYTES)
        if imposture is Imposture.ONE_LINE:
            return b"a" * _PIECE_BYTES
        return b'{"launch":"../../x","seq":%d,"t_ns":-1,"kind":"\\u001b[2J"}\n' % (2**63 - number)

    async def serve(stream: Stream) -> None:
        number = 0
        while True:
            number += 1
            await stream.send(piece(number))
            await asyncio.sleep(0)

    return serve
