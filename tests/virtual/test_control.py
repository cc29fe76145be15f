"""`fleet virtual` against a farm that is served in another process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.virtual import app
from orchestrator.domain.errors import UsageError
from orchestrator.virtual.client import ControlError, ask, read_log, running_controls, the_control
from tests.virtual.child import child_farm, client_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

FLEET = str(Path(sys.executable).with_name("fleet"))
LIMIT_S = 30


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, Any]]:
    with child_farm("--phone", "iPhone 14=18.5", "--phone", "iPhone 16=18.6") as (_, farm):
        yield farm


@pytest.fixture
def control(served: dict[str, Any]) -> Path:
    return Path(served["control"])


def fleet(served: dict[str, Any], *arguments: str) -> str:
    """Run a command in this process and return what it prints; errors are raised."""
    ended = CliRunner().invoke(
        app, [*arguments, "--control", served["control"]], catch_exceptions=False
    )
    assert ended.exit_code == 0
    return ended.stdout


def test_phones_are_listed_with_their_state(served: dict[str, Any]) -> None:
    lines = fleet(served, "list").splitlines()
    assert [line.split()[0] for line in lines] == ["vp-01", "vp-02"]
    assert "iPhone 14" in lines[0]
    assert "attached" in lines[0]
    row = json.loads(fleet(served, "list", "--json").splitlines()[1])
    assert (row["name"], row["os"], row["faults"]) == ("vp-02", "18.6", [])


def test_a_fault_is_begun_listed_logged_and_undone(served: dict[str, Any]) -> None:
    told = fleet(served, "fault", "vp-01", "slam", "service=com.apple.afc", "at_byte=7")
    assert told == ""
    assert "slam" in fleet(served, "list")
    assert fleet(served, "fault", "vp-01", "mend") == "1 undone\n"
    events = [json.loads(line) for line in fleet(served, "log").splitlines()]
    fault = next(event for event in events if event.get("kind") == "slam")
    assert (fault["event"], fault["with_at_byte"], fault["phone"]) == ("fault", 7, "vp-01")
    assert events[-1]["event"] == "fault_over"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["vp-09", "unplug"], "there are vp-01, vp-02"),
        (["vp-01", "explode"], "no kind of fault"),
        (["vp-01", "mute", "service=com.apple.nope"], "no service of this phone"),
        (["vp-01", "mute", "service"], "NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    served: dict[str, Any], arguments: list[str], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        fleet(served, "fault", *arguments)


def test_a_refusal_is_one_line_and_exit_code_2_of_the_program(
    served: dict[str, Any], home: Path
) -> None:
    ended = subprocess.run(
        [FLEET, "virtual", "fault", "vp-01", "explode", "--control", served["control"]],
        env=client_environment(served),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1


def test_without_arguments_the_kinds_are_listed() -> None:
    printed = CliRunner().invoke(app, ["fault"]).stdout
    assert "unplug " in printed
    assert "hub_loss ports=" in printed


def test_the_log_goes_on_with_new_events(control: Path) -> None:
    last = max(event["n"] for event in read_log(control))
    following = read_log(control, last, follow=True)
    ask(control, do="fault", phone="vp-02", kind="low_power", settings={})
    assert next(following)["kind"] == "low_power"
    following.close()
    ask(control, do="mend", phone="all")


def test_nonsense_is_answered_and_the_next_request_works(control: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as lines:
        connection.connect(str(control))
        for request in (b"nonsense\n", b"[]\n", b'{"do": "fly"}\n', b'{"do": "fault"}\n'):
            connection.sendall(request)
            assert json.loads(lines.readline())["ok"] is False
        connection.sendall(b'{"do": "list"}\n')
        assert json.loads(lines.readline())["ok"] is True


def test_the_only_farm_is_found_and_none_is_said(
    control: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert control in running_controls()
    monkeypatch.setattr("orchestrator.virtual.client.SOCKETS_ROOT", str(tmp_path))
    with pytest.raises(ControlError, match="no virtual phones"):
        the_control()


def test_only_this_user_can_reach_the_control_socket(control: Path) -> None:
    assert control.parent.stat().st_mode & 0o077 == 0


def test_a_script_on_the_command_line_is_checked(capfd: pytest.CaptureFixture[str]) -> None:
    from orchestrator.virtual.__main__ import main

    assert main(["--phones", "1", "--faults", '[{"phone": "vp-01"}]']) == 2
    assert main(["--phones", "1", "--faults", "{}"]) == 2
    assert "phone, kind and at_s" in capfd.readouterr().err
