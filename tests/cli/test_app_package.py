"""Which phones of a run take a given app; and `fleet build` on a Mac of stand-ins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.app_package import part_unfit, supplied_app
from orchestrator.cli.iphone_build import UnfitAppError, asc_key, built_for_iphone
from orchestrator.config.load import load_config
from orchestrator.domain.errors import BuildError, UsageError
from orchestrator.harness.package import pack_stand_in
from orchestrator.harness.signed.layout import read_app
from orchestrator.harness.signed.preflight import Demands, Refused
from orchestrator.soak.plan import Participants
from tests.harness.signed.making import NOW, TEAM, UDID, AppParts, naive, profile
from tests.harness.signed.test_preflight import PHONE
from tests.harness.xcode.stand_ins import Mac, make_project

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from orchestrator.config.model import FleetConfig

OTHER = replace(PHONE, udid="00008140-000A1B2C3D4E5F61", alias="bench-02")
DEMANDS = Demands(now=NOW, soak_s=3600.0)
LATER = 2125  # a year in which this test is not run


def far(moment: datetime) -> datetime:
    return naive(moment).replace(year=LATER)


def lab(folder: Path) -> FleetConfig:
    project = make_project(folder)
    return load_config(None, [f"harness.project={project}", f"harness.team_id={TEAM}"])


def test_a_phone_that_the_profile_does_not_list_is_missing_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    app = read_app(AppParts().ipa(tmp_path / "app.ipa"))
    parted = part_unfit(Participants((PHONE, OTHER), (), ()), app)
    assert parted.phones == (PHONE,)
    (absence,) = parted.absent
    assert absence.alias == "bench-02"
    assert "device_not_in_profile" in absence.reason
    with pytest.raises(BuildError, match="no phone of the run would take the app: bench-02"):
        part_unfit(Participants((OTHER,), (), ()), app)


def test_an_app_for_iphones_is_not_put_on_virtual_phones(tmp_path: Path) -> None:
    ipa = AppParts().ipa(tmp_path / "app.ipa")
    with pytest.raises(BuildError, match="virtual phones run programs of this host"):
        supplied_app(ipa, DEMANDS, tmp_path, virtual=True)


def test_virtual_phones_take_an_app_of_this_host_with_the_right_bundle_id(tmp_path: Path) -> None:
    ipa = pack_stand_in(tmp_path / "app.ipa")
    assert supplied_app(ipa, DEMANDS, tmp_path, virtual=True).ipa == ipa
    wanted = replace(DEMANDS, bundle_id="dev.other")
    with pytest.raises(BuildError, match="Correct --bundle-id"):
        supplied_app(ipa, wanted, tmp_path, virtual=True)


def test_a_folder_that_was_given_is_packed_and_an_unfit_app_refused(tmp_path: Path) -> None:
    folder = AppParts().folder(tmp_path / "HarnessApp.app")
    package = supplied_app(folder, DEMANDS, tmp_path / "work", virtual=False)
    assert read_app(package.ipa).bundle_id == package.planned.bundle_id
    assert (package.planned.kind, package.planned.commit) == ("supplied", None)
    unsigned = AppParts(profile=None).ipa(tmp_path / "unsigned.ipa")
    with pytest.raises(UnfitAppError) as caught:
        supplied_app(unsigned, DEMANDS, tmp_path, virtual=False)
    assert caught.value.reason is Refused.NO_PROFILE


def test_a_kept_app_is_built_again_for_a_phone_that_its_profile_does_not_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    mac = Mac.install(tmp_path, monkeypatch)
    dates = {"CreationDate": naive(NOW), "ExpirationDate": far(NOW)}
    made = AppParts(profile=profile(**dates)).folder(tmp_path / "a" / "HarnessApp.app")
    mac.builds(made)
    config, cache = lab(tmp_path), tmp_path / "cache"
    first = built_for_iphone(config, 3600.0, io.StringIO(), [PHONE], cache)
    assert not first.built.cached
    assert built_for_iphone(config, 3600.0, io.StringIO(), [PHONE], cache).built.cached
    both = profile(**dates, ProvisionedDevices=[UDID, OTHER.udid])
    mac.builds(AppParts(profile=both).folder(tmp_path / "b" / "HarnessApp.app"))
    again = built_for_iphone(config, 3600.0, io.StringIO(), [PHONE, OTHER], cache)
    assert not again.built.cached


def test_what_xcode_signed_with_a_profile_that_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    mac = Mac.install(tmp_path, monkeypatch)
    ended = AppParts(profile=profile(ExpirationDate=naive(NOW).replace(year=2001)))
    mac.builds(ended.folder(tmp_path / "a" / "HarnessApp.app"))
    with pytest.raises(UnfitAppError) as caught:
        built_for_iphone(lab(tmp_path), 3600.0, io.StringIO(), cache=tmp_path / "cache")
    assert caught.value.reason is Refused.PROFILE_EXPIRES


def test_a_key_comes_whole_from_the_environment_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = load_config(None).harness
    names = ("FLEET_ASC_KEY_PATH", "FLEET_ASC_KEY_ID", "FLEET_ASC_ISSUER_ID")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert asc_key(harness) is None
    monkeypatch.setenv("FLEET_ASC_KEY_ID", "KEYID12345")
    with pytest.raises(UsageError, match="path, issuer_id is missing"):
        asc_key(harness)
    monkeypatch.setenv("FLEET_ASC_ISSUER_ID", "issuer")
    monkeypatch.setenv("FLEET_ASC_KEY_PATH", str(tmp_path / "AuthKey.p8"))
    with pytest.raises(UsageError, match="is not there"):
        asc_key(harness)
    (tmp_path / "AuthKey.p8").write_text("key")
    key = asc_key(harness)
    assert key is not None
    assert key.path.is_absolute()
