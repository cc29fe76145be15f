"""A calibration as people and programs read it."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from orchestrator.domain.calibration import findings
from orchestrator.domain.iphone import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.domain.calibration import Calibration

_UNMEASURED = "unmeasured"


def calibration_lines(found: Calibration) -> list[str]:
    """Return a block of lines: who, what was measured, then what differs from the table."""
    kind = "virtual, " if found.key.virtual else ""
    app = "stand-in app" if found.stand_in else "app"
    entitlement = "with" if found.key.entitled else "without"
    head = (
        f"{found.alias}  {found.model}  iOS {found.os} ({found.key.os_build})  {kind}{app}"
        f" {entitlement} the memory entitlement"
    )
    rows = [
        ("limit", _mib(found.limit_bytes)),
        ("physicalMemory", _memory(found)),
        ("handlers", ", ".join(found.handlers) or "none"),
        ("warnings", _warnings(found)),
        ("kills", _kills(found)),
        ("reports", _reports(found)),
        ("load", f"cold {_ms(found.cold_load_ms)}, warm {_ms(found.warm_load_ms)}"),
        ("first state", _state(found)),
        ("host saw", f"at most {_mib(found.host_peak_bytes)} by sysmontap"),
    ]
    differing = findings(found)
    return [
        head,
        *(f"  {name:<15} {text}" for name, text in rows),
        *(f"  finding: {sentence}" for sentence in differing),
    ]


def as_json(calibrations: Sequence[Calibration]) -> str:
    """Return all as one JSON document."""
    phones = [
        dataclasses.asdict(calibration) | {"findings": findings(calibration)}
        for calibration in calibrations
    ]
    return json.dumps({"schema": 1, "phones": phones}, indent=2)


def _mib(count_bytes: int | None) -> str:
    return _UNMEASURED if count_bytes is None else f"{count_bytes / MIB:.0f} MiB"


def _ms(time_ms: float | None) -> str:
    return _UNMEASURED if time_ms is None else f"{time_ms:.0f} ms"


def _memory(found: Calibration) -> str:
    app, host = found.physical_memory_bytes, found.sysmon_memory_bytes
    told = _UNMEASURED if host is None else f"{host:,}"
    return f"{_UNMEASURED if app is None else f'{app:,}'} bytes by the app, {told} by sysmontap"


def _warnings(found: Calibration) -> str:
    at = f", the kernel's at {found.warned_at_percent} % of the limit"
    heard = (", ".join(found.warnings) or "none") + (at if found.warned_at_percent else "")
    return f"{heard}; {found.warnings_noticed} noticed by the developer services"


def _kills(found: Calibration) -> str:
    deaths = found.deaths
    seen = " or ".join(deaths.exits) or "nothing"
    return f"{deaths.count} by the kernel, seen as {seen}; by us, seen as {found.own_kill}"


def _reports(found: Calibration) -> str:
    delays = ", ".join(f"{delay} s" for delay in found.deaths.report_delays_s)
    return f"{found.deaths.reports} of {found.deaths.count}" + (
        f", after {delays}" if delays else ""
    )


def _state(found: Calibration) -> str:
    cost = found.state
    return (
        f"{_mib(cost.stated_bytes)} stated, footprint {_mib(cost.footprint_bytes)},"
        f" neural ledgers {_mib(cost.neural_bytes)}"
    )
