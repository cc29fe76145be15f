"""com.apple.mobile.heartbeat and com.apple.mobile.assertion_agent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Stream

HEARTBEAT_PERIOD_S: Final = 10
_ANSWER_LIMIT_S: Final = 30


async def serve_heartbeat(stream: Stream) -> None:
    """Ask for a sign of life again and again; a host that is silent for 30 s is dropped."""
    marco = {"Command": "Marco", "Interval": HEARTBEAT_PERIOD_S, "SupportsSleepyTime": True}
    while True:
        await stream.send_plist(marco)
        async with asyncio.timeout(_ANSWER_LIMIT_S):
            await stream.read_plist()
        await asyncio.sleep(HEARTBEAT_PERIOD_S)


async def serve_assertions(stream: Stream) -> None:
    """Grant every power assertion: a virtual phone never sleeps."""
    while True:
        request = await stream.read_plist()
        known = request.get("CommandKey") == "CommandCreateAssertion"
        await stream.send_plist({"Status": "Success"} if known else {"Error": "UnknownCommand"})
