from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from orchestrator.report.last_green import GreenPhone, GreenRun, changes, recall, remember
from tests.report.results import stamps

if TYPE_CHECKING:
    from pathlib import Path

THEN = GreenPhone(
    udid="u-1",
    model="iPhone 15",
    os_build="22F76",
    model_digest="d5e1c6554b1f",
    app_build="release",
    app_sha256="b7" * 32,
    app_commit="c0" * 20,
)


def green(*phones: GreenPhone) -> GreenRun:
    return GreenRun(run_id="green", started_s=1.0, phones=list(phones or (THEN,)))


def changed(then: GreenRun, udid: str = "u-1", model: str = "iPhone 15", **now: str) -> list[str]:
    found = changes(then, udid, model, stamps(**now))
    return [f"{change.what}: {change.then} to {change.now}" for change in found]


def test_an_equal_phone_has_no_change() -> None:
    assert changed(green()) == []


def test_what_differs_is_named_with_both_values() -> None:
    assert changed(green(), os_build="22G86", app_commit="ab" * 20) == [
        "harness commit: c0c0c0c0c0c0 to abababababab",
        "iOS build: 22F76 to 22G86",
    ]


def test_another_phone_of_the_model_stands_for_one_that_is_new() -> None:
    assert changed(green(), udid="u-2", os_build="22G86") == ["iOS build: 22F76 to 22G86"]


def test_a_model_that_was_not_there_is_a_change() -> None:
    assert changed(green(), udid="u-2", model="iPhone 16") == [
        "phone: neither it nor its model was soaked to soaked"
    ]


def test_what_either_side_does_not_know_is_no_change() -> None:
    old = structs.replace(THEN, app_commit="unknown", app_sha256="unknown")
    assert changed(green(old), model_digest="not said") == []


def test_the_last_green_run_is_remembered_in_the_derived_folder(tmp_path: Path) -> None:
    assert recall(tmp_path) is None
    remember(tmp_path, green())
    assert recall(tmp_path) == green()
    (tmp_path / "report" / "last_green.json").write_bytes(b"{")
    assert recall(tmp_path) is None
