"""Holds calls of the library to their deadline and lets only `DeviceError` out.

What an exception means stands in `errors`, which is imported with the first one: it names parts of
the library that take a third of a second to load, and `fleet devices` needs none of them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from orchestrator.domain.errors import DeadlineExceededError, DeviceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.domain.deadline import Deadline


@contextmanager
def translated(alias: str, layer: str, phase: str, deadline: Deadline) -> Iterator[None]:
    """Hold the body to the deadline and let only `DeviceError` out.

    Raises:
        DeadlineExceededError: If the body is not done in time; it is cancelled.
        DeviceError: For whatever else the body raises.
    """
    with anyio.move_on_after(deadline.remaining_s()) as scope:
        try:
            yield
        except DeviceError:
            raise
        except Exception as error:
            from orchestrator.device.pmd3.errors import device_error  # noqa: PLC0415 - see above

            raise device_error(error, alias, layer, phase) from error
    if scope.cancelled_caught:
        remedy = "The phone is silent; unlock it, check the cable, restart it if it stays so"
        raise DeadlineExceededError(alias, layer, phase, deadline.limit_s, remedy=remedy)
