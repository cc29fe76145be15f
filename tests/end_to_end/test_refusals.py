"""What is wrong is said in one plain line with its exit code, before anything is touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.fleet_process import (
    QUICK,
    ROOT,
    WITHOUT_SWIFT,
    FinishedRun,
    run_fleet,
    served_phones,
)

if TYPE_CHECKING:
    from pathlib import Path

NO_USBMUX = "127.0.0.1:1"  # nothing listens there
pytestmark = pytest.mark.timeout(300)


def refusal(folder: Path, *arguments: str, cwd: Path = ROOT) -> FinishedRun:
    run = run_fleet(folder, *arguments, cwd=cwd, USBMUXD_SOCKET_ADDRESS=NO_USBMUX)
    assert not (folder / "runs").exists(), "a refused run leaves no directory"
    assert "Traceback" not in run.stderr
    return run


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("schemaa: 1\n", ":1:1: unknown key"),
        ("schema: 1\nschema: 1\n", ":2:1: duplicate key"),
        ("gate: {min_battery_percent: 30m}\n", ":1:8: gate.min_battery_percent"),
        ("sources: [\n", ":2:1: broken YAML"),
    ],
)
def test_a_bad_configuration_is_exit_2_with_its_place(
    text: str, where: str, tmp_path: Path
) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text(text)
    run = refusal(tmp_path, "soak", "--virtual", "--config", str(config))
    assert run.exit_code == 2
    assert run.stderr.startswith(f"{config}{where}")
    assert run.stderr.count("\n") == 1


def test_a_line_added_to_the_committed_file_is_named(tmp_path: Path) -> None:
    lines = (ROOT / "fleet.yaml").read_text().splitlines(keepends=True)
    (tmp_path / "fleet.yaml").write_text("".join([*lines, "retries: 3\n"]))
    run = refusal(tmp_path, "soak", "--virtual", cwd=tmp_path)
    assert run.exit_code == 2
    assert run.stderr.startswith(f"fleet.yaml:{len(lines) + 1}:1: unknown key, 'retries'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--config", "/nonexistent.yaml"), "/nonexistent.yaml: cannot be read"),
        (("--duration", "60"), "a duration needs a unit"),
        (("--scenario", "smok"), "The scenarios are smoke"),
        (("--set", "harness.defekt=x"), "--set harness.defekt: unknown key"),
        (("--devices", "bench-99"), "there is no phone 'bench-99'"),
        (("--devices", "model >"), "--devices"),
        (("--seed", "-1"), "seed"),
    ],
)
def test_bad_usage_is_exit_2_even_with_no_phone(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    run = refusal(tmp_path, "soak", *arguments)
    assert run.exit_code == 2
    assert words in run.stderr


def test_no_phone_is_exit_3_and_says_what_to_do(tmp_path: Path) -> None:
    for devices in ("all", "ram_gb >= 6"):
        run = refusal(tmp_path, "soak", "--devices", devices)
        assert run.exit_code == 3
        assert "--virtual" in run.stderr


def test_an_unknown_name_lists_the_names_there_are(tmp_path: Path) -> None:
    run = refusal(tmp_path, "soak", "--virtual", "--devices", "vp-01,nobody")
    assert run.exit_code == 2
    assert "vp-01, vp-02, vp-03, vp-04" in run.stderr


def test_an_expression_that_selects_nothing_is_exit_3(tmp_path: Path) -> None:
    assert refusal(tmp_path, "soak", "--virtual", "--devices", "os >= 19").exit_code == 3


def test_an_absent_expected_phone_is_an_error_phone_and_exit_4(tmp_path: Path) -> None:
    config = tmp_path / "lab.yaml"
    config.write_text('expect:\n  - {udid: "00008140-000A1B2C3D4E5F60", alias: bench-09}\n')
    run = run_fleet(tmp_path, "soak", "--virtual", "--config", str(config), *QUICK, limit_s=200)
    assert run.exit_code == 4, run.stderr
    outcomes = {phone["alias"]: phone["outcome"] for phone in run.summary["phones"]}
    assert outcomes.pop("bench-09") == "ERROR"
    assert set(outcomes.values()) == {"PASS"}


def test_real_phones_without_xcode_are_exit_5(tmp_path: Path) -> None:
    # A phone that does not say it is virtual is a real one to every client; none is here, so the
    # refusal itself is asked for.
    from orchestrator.cli.app_package import built_app
    from orchestrator.config.load import load_config
    from orchestrator.domain.errors import BuildError

    with pytest.raises(BuildError, match="Xcode is needed") as caught:
        built_app(load_config(None), tmp_path, virtual=False)
    assert caught.value.exit_code == 5


def test_without_swift_the_stand_in_runs_and_says_so(tmp_path: Path) -> None:
    run = run_fleet(tmp_path, "soak", "--virtual", "--devices", "vp-01", *QUICK, PATH=WITHOUT_SWIFT)
    assert run.exit_code == 0, run.stderr
    assert "stand-in" in run.stderr
    assert "stand-in" in run.stdout.lower()
    assert "stand-in" in (run.path / "summary.md").read_text().lower()
    assert "STAND-IN" in (run.path / "report" / "index.html").read_text()


def test_a_report_of_what_is_no_run_is_exit_2(tmp_path: Path) -> None:
    run = run_fleet(tmp_path, "report", str(tmp_path / "nothing"))
    assert run.exit_code == 2
    assert run.stderr.count("\n") == 1


def test_json_is_alone_on_stdout(tmp_path: Path) -> None:
    run = run_fleet(
        tmp_path, "soak", "--virtual", "--devices", "vp-01", "--json", *QUICK, limit_s=200
    )
    assert run.stdout == (run.path / "summary.json").read_text()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with served_phones(tmp_path, "--phones", "1") as farm:
        port = farm["usbmux"].rpartition(":")[2]
        run = run_fleet(tmp_path, "virtual", "serve", "--port", port)
    assert run.exit_code == 2
    assert port in run.stderr
    assert os.linesep not in run.stderr.strip()
