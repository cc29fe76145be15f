"""The app that a run installs: the Swift harness, or the stand-in where there is no Swift."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.live import BuildLine
from orchestrator.cli.printing import note
from orchestrator.harness.build import build_for_iphone, build_host
from orchestrator.harness.package import AppIdentity, pack_binary, pack_stand_in
from orchestrator.harness.revision import source_revision
from orchestrator.runlog.documents import PlannedApp

if TYPE_CHECKING:
    from orchestrator.config.model import FleetConfig

STAND_IN_NOTE = (
    "note: no Swift toolchain on PATH: virtual phones run the Python stand-in app; "
    "its results say nothing about the Swift pipeline; docs/how-to/get-swift.md"
)


@dataclass(frozen=True, slots=True)
class AppPackage:
    """A packed app."""

    ipa: Path
    planned: PlannedApp


def built_app(config: FleetConfig, folder: Path, virtual: bool) -> AppPackage:
    """Build and pack the app for a run; blocks, compiler output goes to stderr.

    Args:
        config: Names the bundle.
        folder: Gets the `.ipa`.
        virtual: Whether all phones are virtual ones.

    Raises:
        BuildError: If it cannot be built, or real phones are asked for without Xcode.
    """
    if not virtual:
        build_for_iphone()
    identity = AppIdentity(bundle_id=config.harness.bundle_id)
    ipa = folder / f"{identity.name}.ipa"
    output = BuildLine(sys.stderr)
    try:
        binary = build_host(output)
    finally:
        output.done()
    if binary is None:
        note(STAND_IN_NOTE)
        pack_stand_in(ipa, identity)
    else:
        pack_binary(binary, ipa, identity)
    planned = PlannedApp(
        kind="stand-in" if binary is None else "swift",
        bundle_id=identity.bundle_id,
        name=identity.name,
        package_sha256=hashlib.sha256(ipa.read_bytes()).hexdigest(),
        commit=source_revision(),
    )
    return AppPackage(ipa, planned)
