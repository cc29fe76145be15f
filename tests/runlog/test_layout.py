from pathlib import Path

import pytest

from orchestrator.runlog.layout import DevicePaths, device_directory_name, safe_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("bench-01", "bench-01"),
        ("../../etc/passwd", "etc_passwd"),
        ("Möbius <b>\n\x1b[31m", "M_bius_b_31m"),
        ("...", "unnamed"),
        ("a" * 200, "a" * 64),
    ],
)
def test_hostile_text_becomes_one_harmless_component(text: str, name: str) -> None:
    assert safe_name(text) == name


def test_a_phone_is_keyed_by_alias_and_the_end_of_its_udid() -> None:
    assert device_directory_name("b/1", "00008140-000A1B2C3D4E5F60") == "b_1-3D4E5F60"


def test_attempts_come_in_number_order(tmp_path: Path) -> None:
    paths = DevicePaths(tmp_path)
    for name in ("10", "2", "x", "²"):
        (tmp_path / "attempts" / name).mkdir(parents=True)
    assert [attempt.root.name for attempt in paths.attempts()] == ["2", "10"]
