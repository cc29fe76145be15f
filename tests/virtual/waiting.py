"""Waits for what other tasks and processes do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S = 10


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; nothing signals it, so it is looked at again and again."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
