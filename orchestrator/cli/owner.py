"""Whether the process of a run that has not ended is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.soak.locks import holders, lock_folder
from orchestrator.soak.progress import process_lives

if TYPE_CHECKING:
    from orchestrator.runlog.documents import RunDocument


def owner_lives(run: RunDocument) -> bool:
    """Return whether the process that runs it is there.

    A pid may be somebody else's by now; a lock is held by its owner alone. A run of a self-test
    holds none, because its phones are its own.
    """
    held = any(owner.run_id == run.run_id for owner in holders(lock_folder()))
    return held and process_lives(run.owner_pid)
