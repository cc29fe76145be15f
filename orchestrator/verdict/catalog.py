"""All checks there are; a scenario names those it requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.verdict.checks.background import BackgroundReleases
from orchestrator.verdict.checks.budget import BudgetMatchesDevice, BudgetNeverExceeded
from orchestrator.verdict.checks.completeness import TelemetryComplete
from orchestrator.verdict.checks.counts import TrimCountConsistent
from orchestrator.verdict.checks.endings import CrashNone, JetsamNone, SoakCompleted
from orchestrator.verdict.checks.evictions import EvictFreesMemory, EvictOnWarning
from orchestrator.verdict.checks.flat_decode import PerfFlatDecode
from orchestrator.verdict.checks.growth import MemoryDrift, MemoryStaticKV
from orchestrator.verdict.checks.handlers import EvictHandlerFirst
from orchestrator.verdict.checks.hanging import HangNone
from orchestrator.verdict.checks.lifecycle import StateLifecycle
from orchestrator.verdict.checks.loading import LoadTime, PlanPlacement
from orchestrator.verdict.checks.memory import MemoryPeak
from orchestrator.verdict.checks.notices import EvictNotice, TrimNotice
from orchestrator.verdict.checks.parity import TrimParity
from orchestrator.verdict.checks.proof import ContextProven
from orchestrator.verdict.checks.quantization import QuantMatchesDevice
from orchestrator.verdict.checks.speed import PerfDecay, PerfThroughput
from orchestrator.verdict.checks.states import StateSerialised
from orchestrator.verdict.checks.stream import StreamEndsOnce, StreamSane
from orchestrator.verdict.checks.text import StreamTextValid
from orchestrator.verdict.checks.trims import TrimKeepsTail, TrimOnSchedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.verdict.check import Check, CheckInfo

CHECKS: Final[tuple[type[Check], ...]] = (
    BudgetNeverExceeded,
    BudgetMatchesDevice,
    TrimOnSchedule,
    TrimKeepsTail,
    TrimCountConsistent,
    TrimParity,
    TrimNotice,
    EvictOnWarning,
    EvictFreesMemory,
    EvictNotice,
    EvictHandlerFirst,
    QuantMatchesDevice,
    MemoryPeak,
    MemoryDrift,
    MemoryStaticKV,
    BackgroundReleases,
    JetsamNone,
    CrashNone,
    HangNone,
    StateSerialised,
    StateLifecycle,
    StreamEndsOnce,
    StreamTextValid,
    StreamSane,
    ContextProven,
    PerfThroughput,
    PerfDecay,
    PerfFlatDecode,
    PlanPlacement,
    LoadTime,
    SoakCompleted,
    TelemetryComplete,
)

CATALOG: Final[dict[str, CheckInfo]] = {check.info.id: check.info for check in CHECKS}


def unknown_limit(thresholds: Mapping[str, Mapping[str, float]]) -> str | None:
    """Return the first limit that no check has, as a sentence; None where all are known."""
    for check_id, limits in thresholds.items():
        known = [limit.name for limit in CATALOG[check_id].limits]
        for name in limits:
            if name not in known:
                listed = ", ".join(known) or "none"
                return f"checks: {check_id} has no limit {name!r}; its limits are {listed}"
    return None
