from __future__ import annotations

import pytest

from orchestrator.domain.iphone import CATALOG
from orchestrator.virtual.identity import (
    build_of,
    default_phones,
    identity_of,
    model_of,
    offers_tunnel,
    phones_of,
    serves_developer_on_lockdown,
)


def test_the_udid_is_the_chip_id_and_the_ecid_in_hexadecimal() -> None:
    identity = identity_of(model_of("iPhone 15 Pro"), "18.6", 0, seed=0)
    chip, _, ecid = identity.udid.partition("-")
    assert chip == "00008130"
    assert len(ecid) == 16
    assert int(ecid, 16) == identity.ecid


def test_the_same_seed_gives_the_same_phone_and_another_seed_another_one() -> None:
    model = model_of("iPhone 14")
    assert identity_of(model, "18.5", 1, seed=7) == identity_of(model, "18.5", 1, seed=7)
    assert identity_of(model, "18.5", 1, seed=7).udid != identity_of(model, "18.5", 1, seed=8).udid


def test_a_hundred_phones_of_one_model_have_different_identities() -> None:
    model = model_of("iPhone 16")
    phones = [identity_of(model, "18.6", index, seed=0) for index in range(100)]
    for name in ("udid", "serial_number", "wifi_address", "name"):
        assert len({getattr(phone, name) for phone in phones}) == 100


def test_the_build_is_that_of_the_version() -> None:
    assert identity_of(model_of("iPhone 14"), "18.5", 0, seed=0).build == "22F76"


@pytest.mark.parametrize("os", ["15.7", "beta", "", "18.5 ", "018.5"])
def test_what_is_no_served_version_is_refused(os: str) -> None:
    with pytest.raises(ValueError, match="no version of iOS from 16 on"):
        build_of(os)


@pytest.mark.parametrize(
    ("os", "build"), [("18.5", "22F76"), ("18.10", "22K990"), ("26.1", "23B990")]
)
def test_an_unknown_build_is_made_up_in_apples_form(os: str, build: str) -> None:
    assert build_of(os) == build


def test_a_farm_has_four_phones_by_default() -> None:
    assert default_phones() == [
        ("iPhone 14", "18.5"),
        ("iPhone 15", "18.5"),
        ("iPhone 15 Pro", "18.6"),
        ("iPhone 16", "18.6"),
    ]


def test_a_count_repeats_the_models_in_a_round() -> None:
    assert [model for model, _ in phones_of(["iphone 14", "iPhone 16"], 3)] == [
        "iPhone 14",
        "iPhone 16",
        "iPhone 14",
    ]


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'iPhone 3G' .* iPhone 14 Pro Max"):
        phones_of(["iPhone 14", "iPhone 3G"])


@pytest.mark.parametrize(("models", "count"), [([], None), (["iPhone 14"], 0), (["iPhone 14"], -1)])
def test_a_farm_without_phones_is_refused(models: list[str], count: int | None) -> None:
    with pytest.raises(ValueError, match="at least one"):
        phones_of(models, count)


def test_every_model_of_the_catalog_can_be_made() -> None:
    for index, (name, os) in enumerate(phones_of([model.model for model in CATALOG])):
        assert identity_of(model_of(name), os, index, seed=0).model.model == name


def test_developer_services_moved_into_the_tunnel_with_ios_17() -> None:
    assert serves_developer_on_lockdown("16.7.10")
    assert not serves_developer_on_lockdown("17.0")
    assert not offers_tunnel("17.3.1")
    assert offers_tunnel("17.4")
