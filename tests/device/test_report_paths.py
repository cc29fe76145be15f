from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.device.report_paths import local_paths


def test_ordinary_paths_are_kept() -> None:
    paths = ["/JetsamEvent-2026-01-01-101010.ips", "/Retired/App-2026.ips"]
    assert local_paths(paths) == {path: PurePosixPath(path[1:]) for path in paths}


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/a/../../b", "/..", "/", "", "/a\\..\\b", "/C:/x", "/a\x00b"]
)
def test_a_hostile_path_stays_below_the_folder(path: str, tmp_path: Path) -> None:
    local = (tmp_path / local_paths([path])[path]).resolve()
    assert local.is_relative_to(tmp_path)
    assert local != tmp_path


def test_names_that_differ_in_case_only_do_not_overwrite_each_other() -> None:
    places = local_paths(["/App.ips", "/app.ips"])
    assert len({str(place).casefold() for place in places.values()}) == 2


def test_a_changed_path_is_the_same_at_the_next_pull() -> None:
    assert local_paths(["/a:b.ips"]) == local_paths(["/a:b.ips"])
    assert str(local_paths(["/a:b.ips"])["/a:b.ips"]).startswith("a_b~")


def test_a_very_long_name_fits_a_file_system() -> None:
    path = "/" + "é" * 5000 + ".ips"
    assert len(local_paths([path])[path].name.encode()) <= 200


@given(st.lists(st.text(max_size=30).map(lambda text: f"/{text}"), max_size=8))
def test_any_paths_stay_inside_and_apart(paths: list[str]) -> None:
    places = local_paths(paths)
    assert len({str(place).casefold() for place in places.values()}) == len(set(paths))
    for place in places.values():
        assert not place.is_absolute()
        assert not {"..", ""} & set(place.parts)
        assert place.parts
