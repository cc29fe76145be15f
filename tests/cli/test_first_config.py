"""`fleet init`: what it writes is a valid configuration, whatever the phones say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.attached import ListedPhone
from orchestrator.cli.first_config import first_config
from orchestrator.config.load import load_config
from tests.end_to_end.fleet_process import run_fleet

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.config.model import FleetConfig

NO_USBMUX = "127.0.0.1:1"  # nothing listens there


def phone(udid: str = "00008140-000A1B2C3D4E5F60", **changes: str) -> ListedPhone:
    values = {"alias": "bench-01", "model": "iPhone 16", "os": "18.6", "note": ""} | changes
    return ListedPhone(
        udid=udid,
        name="phone",
        product_type="iPhone17,3",
        build="22G86",
        source="usb",
        virtual=False,
        tags=[],
        **values,
    )


def loaded(text: str, folder: Path) -> FleetConfig:
    file = folder / "made.yaml"
    file.write_text(text)
    return load_config(file)


def test_attached_phones_are_expected_by_name(tmp_path: Path) -> None:
    text = first_config([phone(), phone("00008140-000A1B2C3D4E5F61", alias="bench-02")])
    assert [entry.alias for entry in loaded(text, tmp_path).expect] == ["bench-01", "bench-02"]
    assert "# iPhone 16, iOS 18.6" in text


def test_all_but_the_phones_is_as_the_defaults_are(tmp_path: Path) -> None:
    made = loaded(first_config([]), tmp_path).model_dump(exclude={"harness"})
    assert made == load_config(None).model_dump(exclude={"harness"})


def test_hostile_names_reach_neither_keys_nor_comments(tmp_path: Path) -> None:
    hostile = phone(
        alias='x"}\nexpect: []', model="iPhone\nscenario: x", os="18\u2028: y", note="a\n- {b"
    )
    text = first_config([hostile, phone("not a udid\n- x")])
    (entry,) = loaded(text, tmp_path).expect
    assert entry.alias == "bench-01"
    assert "\nscenario: x" not in text


def test_a_file_that_is_there_is_replaced_by_force_alone(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    run = run_fleet(tmp_path, "init", "--output", str(file), USBMUXD_SOCKET_ADDRESS=NO_USBMUX)
    assert run.exit_code == 0, run.stderr
    assert "expects 0 of 0" in run.stdout
    file.write_text("mine")
    run = run_fleet(tmp_path, "init", "--output", str(file), USBMUXD_SOCKET_ADDRESS=NO_USBMUX)
    assert run.exit_code == 2
    assert "--force" in run.stderr
    assert file.read_text() == "mine"
    run = run_fleet(
        tmp_path, "init", "--output", str(file), "--force", USBMUXD_SOCKET_ADDRESS=NO_USBMUX
    )
    assert run.exit_code == 0
    assert load_config(file).expect == ()
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_the_first_line_names_the_schema_for_editors() -> None:
    first, second = first_config([]).splitlines()[:2]
    assert first == "# yaml-language-server: $schema=fleet.schema.json"
    assert "fleet schema --output fleet.schema.json" in second
