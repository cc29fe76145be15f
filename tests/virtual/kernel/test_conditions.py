"""The lines of the conditions channel are those of docs/protocol.md, byte for byte."""

from __future__ import annotations

import pytest

from orchestrator.virtual.kernel import (
    BatteryChange,
    Condition,
    ForegroundChange,
    LowPowerChange,
    MemoryWarning,
    ThermalChange,
    ThermalLevel,
)
from orchestrator.virtual.kernel.conditions import condition_line


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        (MemoryWarning(), b'{"n":1,"event":"memory_warning"}\n'),
        (ThermalChange(ThermalLevel.FAIR), b'{"n":1,"event":"thermal","state":"fair"}\n'),
        (
            BatteryChange(87, charging=True),
            b'{"n":1,"event":"battery","level_percent":87,"charging":true}\n',
        ),
        (ForegroundChange(value=False), b'{"n":1,"event":"foreground","value":false}\n'),
        (LowPowerChange(value=True), b'{"n":1,"event":"low_power","value":true}\n'),
    ],
)
def test_each_condition_has_the_form_of_the_protocol(condition: Condition, line: bytes) -> None:
    assert condition_line(1, condition) == line
