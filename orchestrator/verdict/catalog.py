"""All checks there are; a scenario names those it requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.verdict.checks.budget import BudgetMatchesDevice, BudgetNeverExceeded
from orchestrator.verdict.checks.completeness import TelemetryComplete
from orchestrator.verdict.checks.endings import CrashNone, JetsamNone, SoakCompleted
from orchestrator.verdict.checks.evictions import EvictFreesMemory, EvictOnWarning
from orchestrator.verdict.checks.memory import MemoryPeak
from orchestrator.verdict.checks.notices import EvictNotice, TrimNotice
from orchestrator.verdict.checks.proof import ContextProven
from orchestrator.verdict.checks.quantization import QuantMatchesDevice
from orchestrator.verdict.checks.states import StateSerialised
from orchestrator.verdict.checks.trims import TrimKeepsTail, TrimOnSchedule

if TYPE_CHECKING:
    from orchestrator.verdict.check import Check, CheckInfo

CHECKS: Final[tuple[type[Check], ...]] = (
    BudgetNeverExceeded,
    BudgetMatchesDevice,
    TrimOnSchedule,
    TrimKeepsTail,
    TrimNotice,
    EvictOnWarning,
    EvictFreesMemory,
    EvictNotice,
    QuantMatchesDevice,
    MemoryPeak,
    JetsamNone,
    CrashNone,
    StateSerialised,
    ContextProven,
    SoakCompleted,
    TelemetryComplete,
)

CATALOG: Final[dict[str, CheckInfo]] = {check.info.id: check.info for check in CHECKS}
