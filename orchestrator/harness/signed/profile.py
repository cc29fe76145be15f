"""A provisioning profile: who signed for which app, on which phones, until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from orchestrator.harness.signed.der import DerError, signed_content
from orchestrator.harness.signed.plist import PlistError, read_plist

if TYPE_CHECKING:
    from collections.abc import Mapping

# Profiles of a personal team last 7 days, those of a paid one a year (H).
_PERSONAL_LIFE: Final = timedelta(days=8)


@dataclass(frozen=True, slots=True)
class Profile:
    """What an `embedded.mobileprovision` says. Texts are as they came."""

    name: str
    uuid: str
    teams: tuple[str, ...]
    created: datetime | None
    expires: datetime
    udids: frozenset[str] | None  # None: every phone (enterprise)
    entitlements: Mapping[str, Any]  # what it allows

    @property
    def is_personal(self) -> bool:
        """Whether it lives as shortly as those of a personal team."""
        return self.created is not None and self.expires - self.created <= _PERSONAL_LIFE


def read_profile(data: bytes) -> Profile:
    """Return the profile in the bytes of an `embedded.mobileprovision`.

    Raises:
        ValueError: Saying what is wrong with them.
    """
    try:
        values = read_plist(signed_content(data))
    except DerError as error:
        raise ValueError(str(error)) from error
    except PlistError as error:
        raise ValueError(f"its plist cannot be read: {error}") from error
    return profile_of(values)


def profile_of(values: object) -> Profile:
    """Return the profile of a decoded plist.

    Raises:
        ValueError: If a key that every profile has is missing.
    """
    if not isinstance(values, dict):
        raise ValueError("its plist is no dictionary")  # noqa: TRY004 - callers know one error
    expires, created = values.get("ExpirationDate"), values.get("CreationDate")
    entitlements = values.get("Entitlements")
    if not isinstance(expires, datetime) or not isinstance(entitlements, dict):
        raise ValueError("it has no ExpirationDate or no Entitlements")  # noqa: TRY004 - as above
    devices, teams = values.get("ProvisionedDevices"), values.get("TeamIdentifier")
    everywhere = values.get("ProvisionsAllDevices") is True
    listed = frozenset(map(str, devices)) if isinstance(devices, list) else frozenset[str]()
    return Profile(
        name=str(values.get("Name", "")),
        uuid=str(values.get("UUID", "")),
        teams=tuple(map(str, teams)) if isinstance(teams, list) else (),
        created=created.replace(tzinfo=UTC) if isinstance(created, datetime) else None,
        expires=expires.replace(tzinfo=UTC),
        udids=None if everywhere else listed,
        entitlements=entitlements,
    )
