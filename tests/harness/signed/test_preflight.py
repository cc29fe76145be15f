"""Each reason against a signed app, with the one change that gives it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.phone import Phone
from orchestrator.harness.signed.layout import SignedApp, read_app
from orchestrator.harness.signed.preflight import (
    MEMORY_LIMIT,
    Demands,
    Refused,
    app_refusals,
    phone_refusals,
)
from tests.harness.signed.making import (
    BUNDLE,
    ENTITLEMENTS,
    INFO,
    NOW,
    TEAM,
    UDID,
    AppParts,
    naive,
    profile,
    profile_values,
    program,
)

if TYPE_CHECKING:
    from pathlib import Path

NIGHT_S = 8 * 3600.0
PHONE = Phone(
    udid=UDID,
    alias="bench-01",
    name="bench",
    product_type="iPhone17,3",
    os="18.6",
    build="22G86",
    source="usb",
    virtual=False,
    tags=(),
)


def demands(**changes: Any) -> Demands:  # noqa: ANN401 - fields
    return replace(Demands(now=NOW, soak_s=NIGHT_S), **changes)


def read(parts: AppParts, folder: Path) -> SignedApp:
    return read_app(parts.ipa(folder / "app.ipa"))


def reasons(parts: AppParts, folder: Path, **changes: Any) -> list[Refused]:  # noqa: ANN401
    return [entry.reason for entry in app_refusals(read(parts, folder), demands(**changes))]


def test_a_good_app_is_refused_by_nothing(tmp_path: Path) -> None:
    entitled = AppParts(program=program(entitlements={**ENTITLEMENTS, MEMORY_LIMIT: True}))
    wanted = {"bundle_id": BUNDLE, "team_id": TEAM, "increased_memory_limit": True}
    assert reasons(entitled, tmp_path, **wanted) == []
    assert list(phone_refusals(read(entitled, tmp_path), PHONE)) == []


_WILDCARD = {"application-identifier": f"{TEAM}.dev.example.*", "get-task-allow": True}
_OTHER = {"application-identifier": f"{TEAM}.org.other.app", "get-task-allow": True}
REFUSED: list[tuple[AppParts, dict[str, Any], Refused]] = [
    (
        AppParts(info=INFO | {"CFBundleSupportedPlatforms": ["iPhoneSimulator"]}),
        {},
        Refused.NOT_FOR_IPHONES,
    ),
    (AppParts(info=INFO | {"UIDeviceFamily": [2]}), {}, Refused.NOT_FOR_IPHONES),
    (AppParts(program=program(platform=7)), {}, Refused.NOT_FOR_IPHONES),
    (AppParts(program=b"#!/bin/sh\n"), {}, Refused.NOT_FOR_IPHONES),
    (AppParts(), {"bundle_id": "dev.example.other"}, Refused.BUNDLE_ID),
    (AppParts(program=program(signed=False)), {}, Refused.NOT_SIGNED),
    (AppParts(program=program(ad_hoc=True)), {}, Refused.NOT_SIGNED),
    (AppParts(program=program(encrypted=True)), {}, Refused.ENCRYPTED),
    (AppParts(profile=None), {}, Refused.NO_PROFILE),
    (AppParts(profile=b"garbage"), {}, Refused.NO_PROFILE),
    (
        AppParts(profile=profile(ExpirationDate=naive(NOW - timedelta(days=1)))),
        {},
        Refused.PROFILE_EXPIRES,
    ),
    (
        AppParts(profile=profile(ExpirationDate=naive(NOW + timedelta(hours=7)))),
        {},
        Refused.PROFILE_EXPIRES,
    ),
    (AppParts(), {"team_id": "ZZZZZ99999"}, Refused.TEAM),
    (AppParts(program=program(team="ZZZZZ99999")), {}, Refused.TEAM),
    (AppParts(profile=profile(Entitlements=_OTHER)), {}, Refused.APP_ID),
    (AppParts(), {"increased_memory_limit": True}, Refused.ENTITLEMENT_MISSING),
    (
        AppParts(
            program=program(entitlements={**ENTITLEMENTS, MEMORY_LIMIT: True}),
            profile=profile(Entitlements=_WILDCARD),
        ),
        {"increased_memory_limit": True},
        Refused.ENTITLEMENT_NOT_ALLOWED,
    ),
]


@pytest.mark.parametrize(("parts", "wanted", "reason"), REFUSED)
def test_each_reason_is_found_alone_with_facts_and_remedy(
    parts: AppParts, wanted: dict[str, Any], reason: Refused, tmp_path: Path
) -> None:
    found = list(app_refusals(read(parts, tmp_path), demands(**wanted)))
    assert [refusal.reason for refusal in found] == [reason]
    assert found[0].facts
    assert found[0].remedy


def test_the_cases_cover_every_reason_of_an_app() -> None:
    of_phones = {Refused.DEVICE_NOT_IN_PROFILE, Refused.OS_TOO_OLD, Refused.DEVICE_NOT_SUPPORTED}
    assert {reason for _, _, reason in REFUSED} == set(Refused) - of_phones


def test_a_wildcard_profile_allows_the_bundle_ids_below_it(tmp_path: Path) -> None:
    assert reasons(AppParts(profile=profile(Entitlements=_WILDCARD)), tmp_path) == []


def test_a_personal_team_is_named_where_its_profile_ends_or_cannot_carry_the_limit(
    tmp_path: Path,
) -> None:
    short = profile_values(
        CreationDate=naive(NOW - timedelta(days=6, hours=20)),
        ExpirationDate=naive(NOW + timedelta(hours=4)),
    )
    parts = AppParts(profile=profile(**short))
    found = list(app_refusals(read(parts, tmp_path), demands(increased_memory_limit=True)))
    assert [refusal.reason for refusal in found] == [
        Refused.PROFILE_EXPIRES,
        Refused.ENTITLEMENT_MISSING,
    ]
    assert "7 days" in found[0].facts
    assert "personal team" in found[1].remedy


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (AppParts(profile=profile(ProvisionedDevices=["00" * 20])), Refused.DEVICE_NOT_IN_PROFILE),
        (AppParts(profile=profile(ProvisionedDevices=None)), Refused.DEVICE_NOT_IN_PROFILE),
        (AppParts(info=INFO | {"MinimumOSVersion": "18.10"}), Refused.OS_TOO_OLD),
        (
            AppParts(info=INFO | {"UISupportedDevices": ["iPhone16,1"]}),
            Refused.DEVICE_NOT_SUPPORTED,
        ),
    ],
)
def test_one_phone_is_refused_with_its_own_reason(
    parts: AppParts, reason: Refused, tmp_path: Path
) -> None:
    app = read(parts, tmp_path)
    assert list(app_refusals(app, demands())) == []
    assert [refusal.reason for refusal in phone_refusals(app, PHONE)] == [reason]


def test_a_udid_without_its_dash_is_the_same_phone(tmp_path: Path) -> None:
    bare = replace(PHONE, udid=UDID.replace("-", "").lower())
    assert list(phone_refusals(read(AppParts(), tmp_path), bare)) == []
