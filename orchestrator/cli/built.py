"""What `fleet build` answers with."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from orchestrator.cli.app_package import built_app
from orchestrator.cli.iphone_build import UnfitAppError, built_for_iphone
from orchestrator.harness.signed.preflight import MEMORY_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator.config.model import FleetConfig
    from orchestrator.harness.xcode.build import XcodeError


class BuiltDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`fleet build --json`; the keys are relied on from outside."""

    ok: bool
    cause: str | None = None  # of a failure
    log: str | None = None
    ipa: str = ""
    bundle_id: str = ""
    for_iphones: bool = True  # False: the app of virtual phones
    stand_in: bool = False
    cached: bool = False
    team: str | None = None
    profile: str | None = None
    profile_expires: str | None = None  # UTC
    profile_udids: int | None = None  # None: every phone
    increased_memory_limit: bool | None = None  # as it was signed

    def lines(self) -> Iterator[str]:
        """Yield what a person reads."""
        if not self.for_iphones:
            kind = "the Python stand-in app" if self.stand_in else "the harness for this host"
            yield f"{self.ipa}: {kind}, for virtual phones; no iPhone runs it"
            return
        yield f"{self.ipa}: {self.bundle_id}, {'kept from before' if self.cached else 'built'}"
        udids = "every phone" if self.profile_udids is None else f"{self.profile_udids} phones"
        until = self.profile_expires
        yield f"team {self.team}, profile {self.profile!r} for {udids}, until {until}"
        limit = "increased" if self.increased_memory_limit else "plain"
        yield f"signed for the {limit} memory limit"
        if self.log:
            yield f"log: {self.log}"


def failed_document(error: XcodeError | UnfitAppError) -> BuiltDocument:
    """Return what is answered with where there is no app."""
    if isinstance(error, UnfitAppError):
        return BuiltDocument(ok=False, cause=error.reason)
    return BuiltDocument(ok=False, cause=error.cause, log=str(error.log) if error.log else None)


def build_document(
    config: FleetConfig, soak_s: float, folder: Path, *, virtual: bool
) -> BuiltDocument:
    """Build, and say what came of it.

    Args:
        config: What is built.
        soak_s: How long the profile must last.
        folder: Gets the app of virtual phones.
        virtual: Whether that one is meant.

    Raises:
        BuildError: If it cannot be built or signed.
    """
    if virtual:
        package = built_app(config, folder, virtual=True)
        return BuiltDocument(
            ok=True,
            ipa=str(package.ipa),
            bundle_id=package.planned.bundle_id,
            for_iphones=False,
            stand_in=package.planned.kind == "stand-in",
        )
    made = built_for_iphone(config, soak_s, sys.stderr)
    app = made.app
    profile, program = app.profile, app.executable
    entitlements = (program.entitlements if program else None) or {}
    return BuiltDocument(
        ok=True,
        ipa=str(made.built.ipa),
        bundle_id=app.bundle_id,
        cached=made.built.cached,
        log=str(made.built.log) if made.built.log else None,
        team=program.team if program else None,
        profile=profile.name if profile else None,
        profile_expires=profile.expires.isoformat() if profile else None,
        profile_udids=None if profile is None or profile.udids is None else len(profile.udids),
        increased_memory_limit=entitlements.get(MEMORY_LIMIT) is True,
    )
