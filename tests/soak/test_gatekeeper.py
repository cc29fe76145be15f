"""A phone waits at the gate for what mends itself, and no longer than it may."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import DeviceError
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


UNMOUNTED = replace(HEALTHY, ddi_mounted=False, virtual=None)
MOUNTED = replace(HEALTHY, virtual=None)


async def test_a_real_phones_image_is_mounted_once(
    link: ChangingPhone, remarks: Remarks, tmp_path: Path
) -> None:
    link.answers = [UNMOUNTED, MOUNTED]
    facts = await Gatekeeper(link, LIMITS, tmp_path / "health.json", remarks).admit()
    assert facts is MOUNTED
    assert link.script.calls.count("mount_image") == 1
    assert remarks.told == [("image_mounted", "ddi_not_mounted")]


async def test_an_image_that_does_not_stay_mounted_is_refused(
    link: ChangingPhone, remarks: Remarks, tmp_path: Path
) -> None:
    link.answers = [UNMOUNTED]
    with pytest.raises(GateRefusedError, match="is not mounted"):
        await Gatekeeper(link, LIMITS, tmp_path / "health.json", remarks).admit()
    assert link.script.calls.count("mount_image") == 1


async def test_what_keeps_an_image_from_being_mounted_is_the_reason(
    link: ChangingPhone, remarks: Remarks, tmp_path: Path
) -> None:
    link.answers = [UNMOUNTED]
    link.script.failures["mount_image"] = DeviceError(
        "bench-01", "host", "mount", "no network", cause=Cause.NOT_READY, remedy="Reach it"
    )
    with pytest.raises(GateRefusedError, match=r"is not mounted: no network.*Reach it"):
        await Gatekeeper(link, LIMITS, tmp_path / "health.json", remarks).admit()


async def test_a_virtual_phones_image_is_not_mounted(
    link: ChangingPhone, remarks: Remarks, tmp_path: Path
) -> None:
    link.answers = [replace(HEALTHY, ddi_mounted=False)]
    with pytest.raises(GateRefusedError):
        await Gatekeeper(link, LIMITS, tmp_path / "health.json", remarks).admit()
    assert "mount_image" not in link.script.calls
