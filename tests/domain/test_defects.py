"""The table of deliberate defects: every check has one, and each names the check for it."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.domain.checks import CHECK_IDS
from orchestrator.domain.defects import DEFECT_BY_NAME, DEFECTS

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


def test_there_are_46_defects_with_names_of_their_own() -> None:
    assert len(DEFECTS) == len(DEFECT_BY_NAME) == 46


def test_every_check_has_a_defect_and_every_defect_a_check() -> None:
    assert {defect.check for defect in DEFECTS} == set(CHECK_IDS)


def test_the_table_names_what_the_protocol_names() -> None:
    section = PROTOCOL.read_text().partition("## 5. Defects")[2]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row.split("|")[1])}
    assert named == set(DEFECT_BY_NAME)


def test_parameters_are_counts() -> None:
    assert all(draw > 0 for defect in DEFECTS for draw in defect.draws)
