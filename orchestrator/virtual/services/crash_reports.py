"""com.apple.crashreportmover. The reports themselves are AFC on the crash folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Stream


async def serve_crash_mover(stream: Stream) -> None:
    """Say that all pending reports are moved: the kernel writes them where they are served."""
    await stream.send(b"ping\0")
    await stream.until_closed()
