"""Ends the process that holds phones: it is asked first, and killed only where that is wanted."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import HeldError
from orchestrator.soak.locks import holders, lock_folder

if TYPE_CHECKING:
    from orchestrator.soak.locks import Owner

ORDERLY_LIMIT_S: Final = 30.0  # a run ends within 20 s of a signal
KILL_LIMIT_S: Final = 5.0
POLL_S: Final = 0.1


def end_owner(owner: Owner, *, kick: bool) -> None:
    """Have a run end, and return when its phones are free.

    Args:
        owner: Who holds phones now; that it holds them proves that the pid is its own.
        kick: Whether it is killed if it does not end by itself.

    Raises:
        HeldError: If it is another user's, or does not end.
    """
    _signal(owner, signal.SIGTERM)
    if _freed(owner, ORDERLY_LIMIT_S):
        return
    if kick:
        _signal(owner, signal.SIGKILL)
        if _freed(owner, KILL_LIMIT_S):
            return
    raise HeldError(
        f"{owner.describe()} did not end within {ORDERLY_LIMIT_S:g} s",
        remedy="" if kick else f"`fleet unlock {owner.alias} --kick` kills it",
    )


def _signal(owner: Owner, number: signal.Signals) -> None:
    try:
        if owner.pid > 1:
            os.kill(owner.pid, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise HeldError(
            f"{owner.describe()} is another user's", remedy=f"Ask {owner.user}"
        ) from error


def _freed(owner: Owner, limit_s: float) -> bool:
    ends_s = time.monotonic() + limit_s
    while any(held.run_id == owner.run_id for held in holders(lock_folder())):
        if time.monotonic() > ends_s:
            return False
        time.sleep(POLL_S)
    return True
