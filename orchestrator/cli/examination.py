"""Gathers what the doctor looks at."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.cli.iphone_build import asc_key, demands_of, team_of
from orchestrator.cli.running import gate_limits
from orchestrator.config.load import load_config
from orchestrator.device.discovery import Expected, UsbmuxSource, discover
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.harness.signed.layout import read_app
from orchestrator.soak.doctor.app import app_checks
from orchestrator.soak.doctor.check import HOST, diagnosis_of, failed, ok
from orchestrator.soak.doctor.host import host_checks, swift_check
from orchestrator.soak.doctor.phones import Known, absent_phone, mute_phone, phone_checks
from orchestrator.soak.doctor.xcode import Signing, xcode_checks
from orchestrator.soak.ledger import Ledger
from orchestrator.soak.lock_keys import lock_key, real_address
from orchestrator.soak.locks import holder_of, lock_folder

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.config.model import FleetConfig
    from orchestrator.device.discovery import DeadSource, Discovery
    from orchestrator.domain.phone import Phone
    from orchestrator.soak.doctor.check import Diagnosis, DoctorCheck

DISCOVERY_LIMIT_S: Final = 30.0
FACTS_LIMIT_S: Final = 20.0
SOAK_S: Final = 12 * 3600.0  # a night: so long the profile of an app must last


async def examine(
    config_file: Path | None, runs: Path, *, virtual: bool, ipa: Path | None = None
) -> Diagnosis:
    """Look at the host, and at all phones side by side.

    Args:
        config_file: The configuration, None for the defaults.
        runs: Where run directories go.
        virtual: Whether a run with virtual phones of its own is meant: no phone is looked at.
        ipa: An app that is to be soaked; what a build needs is not looked at then.
    """
    config = load_config(config_file)
    app = None if ipa is None else read_app(ipa)
    checks = list(host_checks(runs))
    if virtual:
        return diagnosis_of([*checks, swift_check()], phones_wanted=False)
    bench = _Bench(config, tuple(UsbmuxSource(s.name, s.usbmux) for s in config.sources))
    found = await bench.discover()
    checks += _source_checks(bench, found)
    checks += [absent_phone(entry.alias) for entry in found.absent]
    checks += [mute_phone(mute.udid, mute.reason) for mute in found.unreachable]
    real = [phone for phone in found.phones if not phone.virtual]
    if app is not None:
        checks += app_checks(app, demands_of(config, SOAK_S, None), real)
    elif real:
        signing = Signing(asc_key(config.harness) is not None, team_of(config.harness))
        udids = [phone.udid for phone in real]
        checks += await anyio.to_thread.run_sync(list, xcode_checks(udids, signing))
    else:
        checks.append(swift_check())
    by_wifi = await bench.by_wifi_too()
    answers: dict[str, list[DoctorCheck]] = {}

    async def look_at(phone: Phone) -> None:
        answers[phone.udid] = await bench.phone_checks(phone, by_wifi_too=phone.udid in by_wifi)

    async with anyio.create_task_group() as tasks:
        for phone in found.phones:
            tasks.start_soon(look_at, phone)
    for phone in found.phones:
        checks += answers[phone.udid]
    return diagnosis_of(checks, phones_wanted=True)


def _source_checks(bench: _Bench, found: Discovery) -> list[DoctorCheck]:
    dead = {entry.source: entry for entry in found.dead_sources}
    return [
        _dead_source(dead[source.name])
        if source.name in dead
        else ok(HOST, "usbmuxd", f"{source.name}: answers at {real_address(source.address)}")
        for source in bench.sources
    ]


def _dead_source(dead: DeadSource) -> DoctorCheck:
    remedy = dead.remedy or "Start usbmuxd, or correct the source's address in fleet.yaml"
    return failed(HOST, "usbmuxd", f"{dead.source}: {dead.facts}", "usbmuxd_dead", remedy)


@dataclass(frozen=True, slots=True)
class _Bench:
    config: FleetConfig
    sources: tuple[UsbmuxSource, ...]

    async def discover(self) -> Discovery:
        return await discover(
            self.sources,
            UsbmuxBrowser(),
            deadline=Deadline.after(DISCOVERY_LIMIT_S),
            expected=[Expected(p.udid, p.alias, p.tags) for p in self.config.expect],
        )

    async def by_wifi_too(self) -> set[str]:
        """Return the UDIDs that are listed by cable and over the network."""
        usb: set[str] = set()
        wireless: set[str] = set()
        for source in self.sources:
            deadline = Deadline.after(FACTS_LIMIT_S)
            try:
                entries = await UsbmuxBrowser().attachments(source, deadline=deadline)
            except DeviceError:
                continue  # told by discovery
            for entry in entries:
                (usb if entry.is_usb else wireless).add(entry.udid)
        return usb & wireless

    async def phone_checks(self, phone: Phone, *, by_wifi_too: bool) -> list[DoctorCheck]:
        address = next(s.address for s in self.sources if s.name == phone.source)
        # No session is opened: a broker is what a link is made with.
        link = Pmd3Link(phone, address, KeeperBroker(KeeperStarter()))
        try:
            facts = await link.facts(deadline=Deadline.after(FACTS_LIMIT_S))
        except DeviceError as error:
            return [mute_phone(phone.alias, str(error))]
        ledger, now_s = Ledger(), time.time()
        tunneld = next(s.tunneld for s in self.config.sources if s.name == phone.source)
        key = lock_key(phone.udid, phone.alias, address, virtual=phone.virtual)
        known = Known(
            tunneld=tunneld,
            by_wifi_too=by_wifi_too,
            last_build=ledger.build_of(phone.udid),
            quarantine=ledger.quarantined(now_s).get(phone.udid),
            held_by=holder_of(key, lock_folder()),
        )
        return list(phone_checks(phone, facts, gate_limits(self.config), known))
