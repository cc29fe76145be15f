"""A phone waits at the gate for what mends itself, and no longer than it may."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import HealthDocument
from orchestrator.runlog.files import read_document
from orchestrator.soak.gate import GateLimits
from orchestrator.soak.gatekeeper import Gatekeeper, GateRefusedError
from tests.device.scripted import HEALTHY, ScriptedLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orchestrator.device.facts import PhoneFacts
    from orchestrator.domain.deadline import Deadline

LOCKED = replace(HEALTHY, locked=True)


@dataclass
class ChangingPhone(ScriptedLink):
    """Says something else each time it is asked; the last answer stays."""

    answers: list[PhoneFacts] = field(default_factory=list)

    async def facts(self, *, deadline: Deadline) -> PhoneFacts:
        await super().facts(deadline=deadline)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@dataclass
class Remarks:
    told: list[tuple[str, object]] = field(default_factory=list)

    def __call__(self, kind: str, **facts: str | float | bool | None) -> None:
        self.told.append((kind, facts["reason"]))


LIMITS = GateLimits(max_start_thermal="nominal", unlock_limit_s=60.0, cool_down_limit_s=60.0)


@pytest.fixture
async def link() -> AsyncIterator[ChangingPhone]:
    link = ChangingPhone()
    yield link
    await link.session.aclose()


@pytest.fixture
def remarks() -> Remarks:
    return Remarks()


@pytest.fixture
def keeper(link: ChangingPhone, remarks: Remarks, tmp_path: Path) -> Gatekeeper:
    return Gatekeeper(link, LIMITS, tmp_path / "health.json", remarks, poll_s=0.0)


async def test_a_phone_that_is_unlocked_in_time_is_admitted(
    keeper: Gatekeeper, link: ChangingPhone, remarks: Remarks
) -> None:
    link.answers = [LOCKED, LOCKED, HEALTHY]
    assert await keeper.admit() == HEALTHY
    assert remarks.told == [("gate_waits", "locked")]
    assert read_document(keeper.health, HealthDocument).refusal is None


async def test_each_reason_is_told_once(
    keeper: Gatekeeper, link: ChangingPhone, remarks: Remarks
) -> None:
    warm = replace(HEALTHY, temperature_c=40.0)
    link.answers = [LOCKED, warm, warm, HEALTHY]
    await keeper.admit()
    assert remarks.told == [("gate_waits", "locked"), ("gate_waits", "too_warm")]


async def test_a_phone_that_stays_locked_is_refused_with_its_cause(
    keeper: Gatekeeper, link: ChangingPhone
) -> None:
    link.answers = [LOCKED]
    impatient = replace(keeper, limits=replace(LIMITS, unlock_limit_s=0.01))
    with pytest.raises(GateRefusedError, match=r"waited 0\.01 s for it") as caught:
        await impatient.admit()
    assert caught.value.cause is Cause.DEVICE_LOCKED
    assert read_document(keeper.health, HealthDocument).refusal == "the phone is locked"


async def test_what_does_not_mend_itself_is_refused_at_once(
    keeper: Gatekeeper, link: ChangingPhone, remarks: Remarks
) -> None:
    link.answers = [replace(HEALTHY, developer_mode=False)]
    with pytest.raises(GateRefusedError, match="Developer Mode"):
        await keeper.admit()
    assert remarks.told == []
