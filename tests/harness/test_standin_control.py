"""The control server of the stand-in app, with clients that behave and clients that do not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.harness.standin_process import TOKEN, Client, StandIn, slow

Launcher = Callable[..., StandIn]


def connected(app: StandIn) -> Client:
    client = app.connect()
    assert client.hello()["ok"]
    return client


def test_a_wrong_token_is_refused_and_the_connection_closed(launch: Launcher) -> None:
    client = launch().connect()
    reply = client.ask("hello", token="guess")
    assert reply == {"reply": "hello", "id": 9, "ok": False, "error": "token"}
    assert client.rest() == []


def test_nothing_is_answered_before_hello(launch: Launcher) -> None:
    client = launch().connect()
    client.send(b'{"id":1,"command":"status"}\nnonsense\n\xff\xfe\n')
    assert client.hello()["id"] == 9


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[1]",
        b"\xff\xfe",
        b"{}",
        b'{"id":true,"command":"status"}',
        b'{"id":1,"command":"dance"}',
        b'{"id":1,"command":["status"]}',
        b'{"id":1,"command":"resume","launch":"x"}',
        b'{"id":1,"command":"resume","launch":"x","seq":-1}',
        b"[" * 100_000,
    ],
)
def test_garbage_is_answered_as_an_error_and_the_app_goes_on(launch: Launcher, line: bytes) -> None:
    client = connected(launch())
    client.send(line + b"\n")
    reply = json.loads(client.line())
    assert (reply["reply"], reply["ok"], reply["error"]) == ("error", False, "command")
    assert client.ask("status")["started"] is False


def test_a_line_over_a_mebibyte_closes_the_connection_alone(launch: Launcher) -> None:
    app = launch()
    client = connected(app)
    with pytest.raises(OSError, match=r"Broken pipe|reset"):
        client.send(b"x" * 4 * 1024**2)
    assert connected(app).ask("status")["ok"] is True


def test_a_second_start_is_refused(launch: Launcher) -> None:
    app = launch()
    client = connected(app)
    assert app.start(client, stop_after_tokens=None, speed=slow())["ok"]
    assert app.start(client)["error"] == "started"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": -1}, "seed"),
        ({"duration_s": True}, "duration_s"),
        ({"speed": None}, "speed"),
        ({"warnings": [{}]}, "warnings[0].at_token"),
        ({"ballast": [5]}, "ballast[0]"),
        ({"prompts": {"min_ids": 5, "max_ids": 4}}, "max_ids"),
    ],
)
def test_a_scenario_that_cannot_be_read_is_refused_with_the_field(
    launch: Launcher, changes: dict[str, object], named: str
) -> None:
    app = launch()
    client = connected(app)
    reply = app.start(client, **changes)
    assert (reply["ok"], reply["error"]) == (False, "scenario")
    assert named in reply["message"]
    assert app.start(client)["ok"] is True


def test_a_package_with_another_digest_is_refused(launch: Launcher) -> None:
    app = launch()
    path = app.container / app.packages[0]["path"] / "model.json"
    path.write_bytes(path.read_bytes() + b" ")
    reply = app.start(connected(app))
    assert reply["error"] == "scenario"
    assert "digest" in reply["message"]


def test_a_package_outside_the_container_is_refused(launch: Launcher) -> None:
    app = launch()
    app.packages[0]["path"] = "../../etc"
    assert "leaves the container" in app.start(connected(app))["message"]


def test_a_stop_before_the_start_ends_the_app(launch: Launcher) -> None:
    app = launch()
    assert connected(app).ask("stop")["ok"] is True
    assert app.status() == 0
    assert app.journal == b""


def test_a_reconnected_client_resumes_after_the_record_it_names(launch: Launcher) -> None:
    app = launch()
    first = connected(app)
    app.start(first, speed=slow())
    got = [first.line() for _ in range(9)]
    first.close()
    second = app.connect()
    hello = second.hello()
    assert hello["started"] is True
    assert hello["seq"] >= 9
    assert second.ask("resume", launch=hello["launch"], seq=9)["ok"] is True
    assert b"".join([*got, *second.rest()]) == app.journal
    assert app.status() == 0


def test_a_resume_of_another_launch_is_refused(launch: Launcher) -> None:
    client = connected(launch())
    assert client.ask("resume", launch="other", seq=0)["error"] == "launch"


def test_a_new_client_replaces_the_old_one(launch: Launcher) -> None:
    app = launch()
    old, new = connected(app), connected(app)
    assert old.rest() == []
    assert new.ask("status")["ok"] is True


def test_a_client_without_the_token_replaces_nobody(launch: Launcher) -> None:
    app = launch()
    client, intruder = connected(app), app.connect()
    intruder.ask("hello", token=TOKEN + "x")
    assert client.ask("status")["ok"] is True


def test_a_client_that_never_reads_does_not_delay_the_soak(launch: Launcher) -> None:
    app = launch()
    deaf = connected(app)
    assert app.start(deaf, stop_after_tokens=6000)["ok"] is True
    app.await_journal(b'"kind":"bye"')
    assert len(app.journal) > 300_000  # more than the socket's buffers take
    deaf.close()
    assert app.status() == 0
