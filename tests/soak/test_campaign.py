"""A campaign tells the ledger how its sessions ended, and names what several phones share."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import msgspec

from orchestrator.device.events import SessionLost
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.runlog.events import read_events
from orchestrator.soak import campaign as campaign_module
from orchestrator.soak.campaign import Campaign
from orchestrator.soak.ledger import Ledger, QuarantinePolicy
from orchestrator.soak.signals import caught_signals
from tests.device.scripted import Script, ScriptedLink, ScriptedSession
from tests.soak.scripted_app import ScriptedApp
from tests.soak.test_session import LINES, Bench, bench

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from orchestrator.runlog.documents import PlannedPhone

__all__ = ["bench"]
POLICY = QuarantinePolicy(after_lab_errors=1, for_hours=1.0)


async def run(bench: Bench, *links: ScriptedLink, ledger: Ledger) -> None:
    """Soak a planned phone over each link."""
    phones = [replace_phone(bench.order.phone, f"UDID-{number}") for number in range(len(links))]
    orders = [replace(bench.order, phone=phone, return_grace_s=0.05) for phone in phones]
    by_udid = dict(zip((phone.udid for phone in phones), links, strict=True))
    campaign = Campaign(
        orders,
        lambda phone: by_udid[phone.udid],
        bench.recorder,
        ledger=ledger,
        quarantine=POLICY,
    )
    with anyio.fail_after(20):
        await campaign.run()


def replace_phone(phone: PlannedPhone, udid: str) -> PlannedPhone:
    return msgspec.structs.replace(phone, udid=udid, alias=udid.lower(), directory=udid)


def kinds(bench: Bench) -> list[str]:
    return [event.kind for event in read_events(bench.recorder.paths.events)]


def second_phone() -> ScriptedLink:
    script = Script()
    return ScriptedLink(script, ScriptedSession(script))


async def test_a_phone_with_repeated_lab_errors_is_quarantined(
    bench: Bench, tmp_path: Path
) -> None:
    failure = DeviceError("b", "install", "install", "no", cause=Cause.INSTALL_FAILED)
    bench.link.script.failures["install"] = failure
    ledger = Ledger(tmp_path / "lab")
    await run(bench, bench.link, ledger=ledger)
    assert "no" in ledger.quarantined(0.0)["UDID-0"].reason
    assert "quarantined" in kinds(bench)


async def test_a_window_that_closes_stops_the_apps_with_what_there_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ScriptedApp(bench.link, LINES, then="silence")
    clock = SimpleNamespace(time=lambda: 2000.0 if app.started.is_set() else 1000.0)
    monkeypatch.setattr(campaign_module, "time", clock)
    monkeypatch.setattr(campaign_module, "WAKE_S", 0.01)
    campaign = Campaign([bench.order], lambda _: bench.link, bench.recorder, until_s=1500.0)
    with anyio.fail_after(20):
        await campaign.run()
    assert app.commands == ["hello", "start", "stop"]
    assert bench.recorder.document.interrupted_by == "until"


async def test_a_signal_from_before_the_campaign_ends_it_in_order(bench: Bench) -> None:
    ScriptedApp(bench.link, LINES, then="silence")
    with caught_signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.lowlevel.checkpoint()
        campaign = Campaign([bench.order], lambda _: bench.link, bench.recorder, signals=signals)
        with anyio.fail_after(20):
            await campaign.run()
    assert bench.recorder.document.interrupted_by == "SIGTERM"
    assert kinds(bench)[-1] == "run_ended"


async def test_a_good_session_notes_the_build(bench: Bench, tmp_path: Path) -> None:
    ScriptedApp(bench.link, LINES)
    ledger = Ledger(tmp_path / "lab")
    await run(bench, bench.link, ledger=ledger)
    assert ledger.build_of("UDID-0") == bench.link.health.build
    assert ledger.quarantined(0.0) == {}


async def test_phones_lost_together_are_a_hub_and_not_to_blame(
    bench: Bench, tmp_path: Path
) -> None:
    other = second_phone()
    for link in (bench.link, other):
        link.session.tell(SessionLost("unplugged"))
    ledger = Ledger(tmp_path / "lab")
    await run(bench, bench.link, other, ledger=ledger)
    (incident,) = [e for e in read_events(bench.recorder.paths.events) if e.kind == "hub_incident"]
    assert sorted(str(incident.facts["phones"]).split(", ")) == ["udid-0", "udid-1"]
    assert incident.facts["count"] == 2
    assert ledger.notes() == []
    await other.session.aclose()


async def test_a_ledger_that_cannot_be_written_costs_a_remark_alone(
    bench: Bench, tmp_path: Path
) -> None:
    ScriptedApp(bench.link, LINES)
    (tmp_path / "open").mkdir(mode=0o755)
    await run(bench, bench.link, ledger=Ledger(tmp_path / "open"))
    assert "ledger_unwritten" in kinds(bench)
    assert bench.recorder.document.ended_s is not None
