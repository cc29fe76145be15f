"""The app that a run installs: the Swift harness, one that was given, or the stand-in."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.cli.iphone_build import built_for_iphone, refuse_unfit
from orchestrator.cli.live import BuildLine
from orchestrator.cli.printing import note
from orchestrator.domain.errors import BuildError
from orchestrator.domain.toolchain import how_to_get_swift
from orchestrator.harness.build import build_host
from orchestrator.harness.package import AppIdentity, pack_app, pack_binary, pack_stand_in
from orchestrator.harness.revision import source_revision
from orchestrator.harness.signed.layout import read_app
from orchestrator.harness.signed.preflight import phone_refusals, supported
from orchestrator.runlog.documents import PlannedApp
from orchestrator.soak.plan import Absence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config.model import FleetConfig
    from orchestrator.domain.phone import Phone
    from orchestrator.harness.signed.layout import SignedApp
    from orchestrator.harness.signed.preflight import Demands
    from orchestrator.soak.plan import Participants

SUPPLIED: Final = "supplied"
MACOS: Final = 1  # PLATFORM_MACOS: what a virtual phone on a Mac runs (not run there)

STAND_IN_NOTE = (
    "note: no Swift toolchain on PATH: virtual phones run the Python stand-in app; "
    "its results say nothing about the Swift pipeline. "
    f"To get Swift: {how_to_get_swift(sys.platform)}"
)


@dataclass(frozen=True, slots=True)
class AppPackage:
    """A packed app."""

    ipa: Path
    planned: PlannedApp
    signed: SignedApp | None = None  # None: made for virtual phones, which check no signature


def built_app(
    config: FleetConfig,
    folder: Path,
    virtual: bool,
    *,
    soak_s: float = 0.0,
    phones: Sequence[Phone] = (),
) -> AppPackage:
    """Build and pack the app for a run; blocks, tools' output goes to stderr.

    Args:
        config: Names the bundle; for iPhones also project, team and key.
        folder: Gets the `.ipa`.
        virtual: Whether all phones are virtual ones.
        soak_s: How long the signature's profile must last.
        phones: Those that the app is for.

    Raises:
        BuildError: If it cannot be built or signed, or real phones are asked for without Xcode.
    """
    output = BuildLine(sys.stderr)
    if not virtual:
        try:
            made = built_for_iphone(config, soak_s, output, phones)
        finally:
            output.done()
        planned = _planned("swift", made.app.bundle_id, made.app.name, made.built.ipa)
        return AppPackage(made.built.ipa, planned, made.app)
    identity = AppIdentity(bundle_id=config.harness.bundle_id)
    ipa = folder / f"{identity.name}.ipa"
    try:
        binary = build_host(output)
    finally:
        output.done()
    if binary is None:
        note(STAND_IN_NOTE)
        pack_stand_in(ipa, identity)
    else:
        pack_binary(binary, ipa, identity)
    kind = "stand-in" if binary is None else "swift"
    return AppPackage(ipa, _planned(kind, identity.bundle_id, identity.name, ipa))


def supplied_app(given: Path, demands: Demands, folder: Path, virtual: bool) -> AppPackage:
    """Return an app that a person built and signed, checked; blocks.

    Args:
        given: An `.ipa`, or an `.app` folder, which is packed.
        demands: What it must be.
        folder: Gets the `.ipa` of a folder.
        virtual: Whether all phones are virtual ones: those check no signature.

    Raises:
        UsageError: If it cannot be read.
        BuildError: If no phone of the run could run it.
    """
    app = read_app(given)
    if virtual:
        refuse_foreign(app, demands)
    else:
        refuse_unfit(app, demands)
    ipa = pack_app(given, folder / f"{app.name}.ipa") if given.is_dir() else given
    return AppPackage(ipa, _planned(SUPPLIED, app.bundle_id, app.name, ipa, ours=False), app)


def refuse_foreign(app: SignedApp, demands: Demands) -> None:
    """Refuse an app that virtual phones cannot run: they run programs of this machine.

    Raises:
        BuildError: Saying what they need.
    """
    if demands.bundle_id is not None and app.bundle_id != demands.bundle_id:
        raise BuildError(
            f"{app.path}: its bundle id is {app.bundle_id!r}, not {demands.bundle_id!r}",
            remedy="Correct --bundle-id",
        )
    if app.executable is not None and app.executable.platform != MACOS:
        raise BuildError(
            f"{app.path}: it was built for iPhones, and virtual phones run programs of this host",
            remedy="Leave --virtual away and attach an iPhone, or pack a build for this host",
        )


def part_unfit(participants: Participants, app: SignedApp) -> Participants:
    """Part phones that would refuse the app from those that would run it: pure.

    A run goes on without them, and they are its `ERROR` phones.

    Raises:
        BuildError: If no phone is left.
    """
    refused = {}
    for phone in participants.phones:
        rules = supported if phone.virtual else phone_refusals
        reasons = list(rules(app, phone))
        if reasons:
            refused[phone.udid] = Absence(
                phone.udid, phone.alias, f"the app does not fit ({reasons[0].reason}): {reasons[0]}"
            )
    fit = tuple(phone for phone in participants.phones if phone.udid not in refused)
    if not fit:
        first = next(iter(refused.values()))
        raise BuildError(f"no phone of the run would take the app: {first.alias}: {first.reason}")
    return replace(participants, phones=fit, absent=(*participants.absent, *refused.values()))


def _planned(kind: str, bundle_id: str, name: str, ipa: Path, *, ours: bool = True) -> PlannedApp:
    return PlannedApp(
        kind=kind,
        bundle_id=bundle_id,
        name=name,
        package_sha256=hashlib.sha256(ipa.read_bytes()).hexdigest(),
        commit=source_revision() if ours else None,
    )
