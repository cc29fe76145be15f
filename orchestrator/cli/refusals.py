"""What a soak refuses before it touches a phone, besides its configuration."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.device.keeper.place import default_root, is_held, place_of
from orchestrator.domain.defects import DEFECT_BY_NAME
from orchestrator.domain.errors import BuildError, HeldError, UsageError
from orchestrator.domain.toolchain import how_to_get_swift

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.config.workload import Scenario
    from orchestrator.runlog.documents import PlannedApp

CLOSING_LIMIT_S: Final = 3.0  # a keeper of a run that just ended is still on its way out
POLL_S: Final = 0.1


def refuse_unknown_defect(text: str | None) -> None:
    """Refuse a defect that no app knows: it would look like a failure of the product.

    Raises:
        UsageError: With the names there are.
    """
    name = (text or "").partition(":")[0]
    if name and name not in DEFECT_BY_NAME:
        known = ", ".join(DEFECT_BY_NAME)
        raise UsageError(f"harness.defect: unknown defect {name!r}", remedy=f"There are {known}")


def refuse_unplayable_scenario(scenario: Scenario, app: PlannedApp) -> None:
    """Refuse a scenario that the stand-in app does not play.

    Raises:
        BuildError: Before anything is installed.
    """
    if app.kind == "stand-in" and scenario.needs_swift:
        raise BuildError(
            f"the scenario {scenario.name} has audits, reloads, visits to the background or "
            "warnings in prefill or idle: the Python stand-in app does not play them",
            remedy=f"Get Swift ({how_to_get_swift(sys.platform)}), or take --scenario smoke",
        )


def refuse_unusable_output(folder: Path) -> None:
    """Refuse an output folder that cannot be made or written.

    Raises:
        UsageError: With the system's reason.
    """
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        if not nearest.is_dir():
            raise NotADirectoryError(20, "Not a directory")
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise UsageError(f"--output {folder}: {reason}") from error


async def refuse_living_sessions(phones: Sequence[tuple[str, str, str]]) -> None:
    """Refuse phones whose earlier, killed run still has a session: `fleet resume` is for these.

    Args:
        phones: Alias, UDID and usbmux address of each.

    Raises:
        HeldError: Naming the first such phone.
    """
    for alias, udid, address in phones:
        place = place_of(default_root(), udid, address)
        with anyio.move_on_after(CLOSING_LIMIT_S):
            while is_held(place):  # noqa: ASYNC110 - a lock of another process sends no event
                await anyio.sleep(POLL_S)
        if is_held(place):
            raise HeldError(
                f"{alias} is held by the living session of a run that was killed",
                remedy="`fleet resume` finishes that run, `fleet stop` ends it",
            )
