"""Work that a stop cuts short, before the app runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, Unpack

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

A = TypeVarTuple("A")
R = TypeVar("R")


class SessionStoppedError(Exception):
    """A stop was requested before the app ran."""


async def until_stop(
    stop: anyio.Event, act: Callable[[Unpack[A]], Awaitable[R]], *arguments: *A
) -> R:
    """Return what `act` returns, unless a stop is requested first.

    Raises:
        SessionStoppedError: If it is.
    """
    results: list[R] = []
    failures: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def give_up() -> None:
            await stop.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(give_up)
        try:
            results.append(await act(*arguments))
        except Exception as error:  # noqa: BLE001 - raised again below; a group would wrap it
            failures.append(error)
        tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if not results:
        raise SessionStoppedError
    return results[0]
