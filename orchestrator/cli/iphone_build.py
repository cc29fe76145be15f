"""From the configuration to a signed app for iPhones, checked before any phone is touched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.config.fields import from_environment
from orchestrator.domain.errors import BuildError, UsageError
from orchestrator.harness.build import PACKAGE_DIR
from orchestrator.harness.package import REPO_ROOT
from orchestrator.harness.revision import source_revision
from orchestrator.harness.signed.layout import read_app
from orchestrator.harness.signed.preflight import Demands, app_refusals, phone_refusals
from orchestrator.harness.xcode.build import BuildOrder, build_for_iphone
from orchestrator.harness.xcode.commands import AscKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config.model import FleetConfig, HarnessBlock
    from orchestrator.domain.phone import Phone
    from orchestrator.harness.signed.layout import SignedApp
    from orchestrator.harness.signed.preflight import Refusal
    from orchestrator.harness.tool import Sink
    from orchestrator.harness.xcode.build import BuiltApp

CACHE = PACKAGE_DIR / ".build" / "fleet" / "iphone"


@dataclass(frozen=True, slots=True)
class IPhoneApp:
    """What was built, and what it says."""

    built: BuiltApp
    app: SignedApp


def built_for_iphone(
    config: FleetConfig,
    soak_s: float,
    sink: Sink,
    phones: Sequence[Phone] = (),
    cache: Path = CACHE,
) -> IPhoneApp:
    """Build, sign and check the harness app; blocks.

    Args:
        config: Project, bundle id, team, key and entitlement.
        soak_s: How long the profile must last from now.
        sink: Gets the tools' output as it comes.
        phones: A kept app that one of them would refuse is built again: its profile is renewed.
        cache: Where derived data, logs and kept apps go.

    Raises:
        BuildError: With one cause.
    """
    harness = config.harness
    demands = demands_of(config, soak_s, harness.bundle_id)

    def usable(ipa: Path) -> bool:
        app = read_app(ipa)
        refusals = [*app_refusals(app, demands)]
        for phone in phones:
            refusals += phone_refusals(app, phone)
        return not refusals

    order = BuildOrder(
        project=_project(harness.project),
        scheme=harness.scheme,
        bundle_id=harness.bundle_id,
        team_id=team_of(harness),
        increased_memory_limit=harness.increased_memory_limit,
        key=asc_key(harness),
        commit=source_revision(),
        cache=cache,
        usable=usable,
    )
    built = build_for_iphone(order, sink)
    app = read_app(built.ipa)
    refuse_unfit(app, demands)
    return IPhoneApp(built, app)


def demands_of(config: FleetConfig, soak_s: float, bundle_id: str | None) -> Demands:
    """Return what a run wants of its app.

    Args:
        config: Team and entitlement.
        soak_s: Until when the profile must last.
        bundle_id: That it must have; None: whatever it has.
    """
    return Demands(
        now=datetime.now(UTC),
        soak_s=soak_s,
        bundle_id=bundle_id,
        team_id=team_of(config.harness),
        increased_memory_limit=config.harness.increased_memory_limit,
    )


class UnfitAppError(BuildError):
    """No iPhone would run the app.

    Attributes:
        reason: The root one, typed.
    """

    def __init__(self, app: SignedApp, refusals: Sequence[Refusal]) -> None:
        first = refusals[0]
        self.reason = first.reason
        more = f" ({len(refusals) - 1} more)" if len(refusals) > 1 else ""
        facts = f"{app.path}: refused ({first.reason}): {first.facts}{more}"
        super().__init__(facts, remedy=first.remedy)


def refuse_unfit(app: SignedApp, demands: Demands) -> None:
    """Refuse an app that no iPhone would run.

    Raises:
        UnfitAppError: Naming the root reason, and how many follow.
    """
    refusals = list(app_refusals(app, demands))
    if refusals:
        raise UnfitAppError(app, refusals)


def team_of(harness: HarnessBlock) -> str | None:
    """Return the team that is configured; None leaves it to the project."""
    return from_environment(harness.team_id)


def asc_key(harness: HarnessBlock) -> AscKey | None:
    """Return the App Store Connect key, None where an account in Xcode is to do.

    Raises:
        UsageError: If it is there in part, or its file is not there.
    """
    given = harness.asc_key
    values = {
        "path": from_environment(given.path),
        "key_id": from_environment(given.key_id),
        "issuer_id": from_environment(given.issuer_id),
    }
    path, key_id, issuer_id = values.values()
    if path is None or key_id is None or issuer_id is None:
        missing = ", ".join(name for name, value in values.items() if value is None)
        if any(values.values()):
            raise UsageError(
                f"the App Store Connect key is given in part: {missing} is missing",
                remedy="Set FLEET_ASC_KEY_PATH, FLEET_ASC_KEY_ID and FLEET_ASC_ISSUER_ID",
            )
        return None
    file = Path(path).expanduser().absolute()  # xcodebuild takes no relative path (H)
    if not file.is_file():
        raise UsageError(f"the App Store Connect key {file} is not there")
    return AscKey(file, key_id, issuer_id)


def _project(text: str) -> Path:
    path = Path(text)
    return path if path.is_absolute() or path.exists() else REPO_ROOT / path
