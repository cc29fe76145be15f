"""The last rungs of the recovery: a hub's power and a reboot, where a lab allows them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.runlog.events import Event, read_events
from orchestrator.soak import ladder
from orchestrator.soak.attempts import PhoneResult, soak_phone
from orchestrator.soak.ladder import RecoveryPolicy, restart, switch_power, unready
from orchestrator.soak.session_state import SessionJournal
from orchestrator.soak.stagger import Stagger
from tests.device.scripted import HEALTHY, ScriptedLink
from tests.soak.test_session import Bench, bench

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.device.facts import PhoneFacts
    from orchestrator.domain.deadline import Deadline

__all__ = ["bench"]

GONE = DeviceError("b", "usbmux", "facts", "not attached", cause=Cause.DEVICE_LOST)


async def soaked(bench: Bench, policy: RecoveryPolicy) -> PhoneResult:
    order = replace(bench.order, lab_retries=1, recovery=policy, return_grace_s=0.05)
    with anyio.fail_after(60):
        result = await soak_phone(order, bench.link, bench.recorder, bench.stop, SessionJournal())
    assert result is not None
    return result


def remarks(bench: Bench, kind: str) -> list[Event]:
    return [event for event in read_events(bench.recorder.paths.events) if event.kind == kind]


def command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-c", *words)


async def test_the_hubs_command_brings_a_phone_back(bench: Bench, tmp_path: Path) -> None:
    flag = tmp_path / "switched"
    script, failures = bench.link.script, {"facts": GONE}
    script.failures.update(failures)
    original = script.step

    async def step(name: str) -> None:
        if flag.exists():
            script.failures.pop("facts", None)
            script.failures["install"] = DeviceError("b", "afc", "install", "x", cause=GONE.cause)
        await original(name)

    script.step = step  # type: ignore[method-assign]
    write = f"import pathlib, sys; pathlib.Path({str(flag)!r}).write_text(' '.join(sys.argv[1:]))"
    policy = RecoveryPolicy(hub_power_command=(*command(write), "{alias}", "port-of-{udid}"))
    result = await soaked(bench, policy)
    assert result.attempts == 2
    phone = bench.order.phone
    assert flag.read_text() == f"{phone.alias} port-of-{phone.udid}"
    assert [event.facts["problem"] for event in remarks(bench, "hub_power")] == [None]


async def test_a_phone_that_stays_away_costs_no_attempt_without_a_command(bench: Bench) -> None:
    bench.link.script.failures["facts"] = GONE
    result = await soaked(bench, RecoveryPolicy())
    assert result.attempts == 1
    assert remarks(bench, "hub_power") == []


async def test_a_command_that_fails_is_told(bench: Bench) -> None:
    phone = bench.order.phone
    ends_badly = RecoveryPolicy(hub_power_command=command("import sys; sys.exit(3)"))
    assert await switch_power(ends_badly, phone) == "the hub's command ended with 3"
    missing = RecoveryPolicy(hub_power_command=("/no/such/uhubctl",))
    assert "cannot run: No such file" in str(await switch_power(missing, phone))


async def test_a_names_text_is_one_word_of_the_command(bench: Bench) -> None:
    phone = bench.order.phone
    hostile = type(phone)(
        **{name: getattr(phone, name) for name in phone.__struct_fields__ if name != "alias"},
        alias="a b; rm -rf {udid}",
    )
    policy = RecoveryPolicy(hub_power_command=("hub", "{alias}"))
    assert len(policy.power_command(hostile)) == 2


async def test_a_reboot_comes_after_the_last_retry_once_and_only_where_it_is_allowed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(_link: object, _stop: object) -> None:
        bench.link.script.calls.append("restarted")

    monkeypatch.setattr("orchestrator.soak.attempts.restart", at_once)
    lost = DeviceError("b", "afc", "install", "gone", cause=Cause.DEVICE_LOST)
    bench.link.script.failures["install"] = lost
    result = await soaked(bench, RecoveryPolicy(reboot=True))
    assert result.attempts == 3
    assert bench.link.script.calls.count("restarted") == 1
    assert [event.attempt for event in remarks(bench, "phone_restarted")] == [2]


@pytest.mark.parametrize("name", ["alias", "udid"])
async def test_a_phone_on_the_list_is_never_restarted(bench: Bench, name: str) -> None:
    listed = frozenset({str(getattr(bench.order.phone, name))})
    lost = DeviceError("b", "afc", "install", "gone", cause=Cause.DEVICE_LOST)
    bench.link.script.failures["install"] = lost
    result = await soaked(bench, RecoveryPolicy(reboot=True, never_reboot=listed))
    assert result.attempts == 2
    assert "restart" not in bench.link.script.calls


class RestartingLink(ScriptedLink):
    """Goes away for two questions once it is told to restart, and comes back as `after`."""

    after: PhoneFacts = HEALTHY
    away = 0

    async def restart(self, *, deadline: Deadline) -> None:
        self.away = 2
        self.health = self.after

    async def facts(self, *, deadline: Deadline) -> PhoneFacts:
        if self.away:
            self.away -= 1
            raise GONE
        return self.health


async def test_a_restarted_phone_is_awaited_until_it_could_soak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ladder, "READY_POLL_S", 0.0)
    link = RestartingLink()
    assert await restart(link, anyio.Event()) is None
    assert link.away == 0


async def test_a_phone_that_comes_back_without_its_image_is_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ladder, "READY_POLL_S", 0.0)
    monkeypatch.setattr(ladder, "READY_LIMIT_S", 0.2)
    link = RestartingLink()
    link.after = replace(HEALTHY, ddi_mounted=False)
    assert "the developer image is not mounted" in str(await restart(link, anyio.Event()))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (HEALTHY, None),
        (replace(HEALTHY, locked=True), "it is locked"),
        (replace(HEALTHY, developer_mode=False), "Developer Mode is off"),
        (replace(HEALTHY, ddi_mounted=False), "the developer image is not mounted"),
    ],
)
def test_ready_is_what_the_phone_was_before(facts: PhoneFacts, reason: str | None) -> None:
    assert unready(facts, HEALTHY) == reason


async def test_starts_are_apart_by_the_gap() -> None:
    stagger, starts = Stagger(0.05), []

    async def begin() -> None:
        await stagger.turn()
        starts.append(anyio.current_time())

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(begin)
    assert starts[-1] - starts[0] >= 0.14
