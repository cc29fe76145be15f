"""Calibrations of the history for those who plan: a soak, and `fleet model budget`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.printing import note
from orchestrator.domain.calibration import CalibrationKey
from orchestrator.history.store import History, HistoryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.config.model import FleetConfig
    from orchestrator.domain.calibration import Calibration
    from orchestrator.domain.phone import Phone


def calibrations(database: Path) -> dict[CalibrationKey, Calibration]:
    """Return what was measured; a history that cannot be read has nothing, and is told of."""
    if not database.exists():
        return {}
    try:
        return History(database).calibrations()
    except HistoryError as error:
        note(f"note: calibrations are not used: {error}")
        return {}


def calibrated_limits(
    database: Path, config: FleetConfig, phones: Sequence[Phone]
) -> dict[str, int]:
    """Return the memory limits to expect, by UDID; a real phone without one is told of."""
    known = calibrations(database)
    limits: dict[str, int] = {}
    for phone in phones:
        entitled = config.harness.increased_memory_limit
        key = CalibrationKey(phone.product_type, phone.build, entitled, phone.virtual)
        found = known.get(key)
        if found is not None and found.limit_bytes is not None:
            limits[phone.udid] = found.limit_bytes
        elif not phone.virtual:
            entitlement = "with" if entitled else "without"
            note(
                f"note: {phone.alias}: {phone.model}, iOS build {phone.build}, {entitlement} the"
                " memory entitlement, is not calibrated: `fleet calibrate` measures its limit"
            )
    return limits
