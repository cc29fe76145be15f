"""Takes the phones of a run, or waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.cli.printing import note
from orchestrator.domain.errors import HeldError
from orchestrator.soak.locks import lock_folder, phones_held

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AsyncExitStack

    from orchestrator.soak.locks import Claim, LockKey

POLL_S: Final = 1.0


async def hold(stack: AsyncExitStack, keys: Sequence[LockKey], claim: Claim, *, wait: bool) -> None:
    """Hold phones until the stack unwinds.

    Raises:
        HeldError: If another run holds one, unless `wait` says to wait for its end.
    """
    told = ""
    while True:
        try:
            stack.enter_context(phones_held(keys, claim, folder=lock_folder()))
        except HeldError as error:
            if not wait:
                raise
            if str(error) != told:
                told = str(error)
                note(f"waiting: {told}")
        else:
            return
        await anyio.sleep(POLL_S)
