"""The server: read-only, on loopback, what it says and to whom."""

from __future__ import annotations

import http.client
import json
import signal
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.live.web.guard import is_loopback
from orchestrator.live.web.server import address_of, listening
from orchestrator.runlog.files import write_document
from tests.end_to_end.fleet_process import start_fleet
from tests.live.phones import summary
from tests.live.web.serving import Served, served
from tests.report.runs import write_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATHS = ["/", "/live.css", "/live.js", "/state.json", "/text"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = write_run(tmp_path_factory.mktemp("served") / "run")
    write_document(written.paths.summary_json, summary("FAIL", "hang"))
    written.paths.html.parent.mkdir()
    written.paths.html.write_text("<!DOCTYPE html><title>the report</title>")
    return written.root


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Served]:
    with served(lambda: run) as started:
        yield started


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_forbids_what_the_page_does_not_need(server: Served, path: str) -> None:
    answer = server.ask(path)
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 's")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/state.json", "/events"])
def test_nothing_can_be_written(server: Served, method: str, path: str) -> None:
    assert server.ask(path, method).status == 405


@pytest.mark.parametrize("path", ["/../run.json", "/%2e%2e/run.json", "/run.json", "/static/"])
def test_no_other_file_is_served(server: Served, path: str) -> None:
    assert server.ask(path).status == 404


def test_another_host_is_refused(server: Served) -> None:
    answer = server.ask("/state.json", Host=f"evil.example:{server.port}")
    assert (answer.status, "fleet serve --host" in answer.text) == (421, True)


def test_another_host_is_served_where_a_person_asked_for_it(run: Path) -> None:
    with served(lambda: run, any_host=True) as server:
        assert server.ask("/state.json", Host="lab.example").status == 200


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True), ("LOCALHOST:1", True), ("127.0.0.1:8808", True), ("127.9.9.9", True),
        ("[::1]:8808", True), ("", False), ("evil.example", False), ("10.0.0.1:80", False),
        ("localhost.evil.example", False), ("127.0.0.1.evil.example", False), ("[::2]", False),
        ("evil.example:127.0.0.1", False),
    ],
)  # fmt: skip
def test_loopback_names(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_the_state_has_the_words_of_the_table(server: Served) -> None:
    view = json.loads(server.ask("/state.json").text)
    assert (view["state"], view["outcome"], view["over"]) == ("ended", "FAIL", True)
    (phone,) = view["phones"]
    assert (phone["phase"], phone["concern"], phone["level"]) == ("FAIL", "FAIL hang", "failed")
    assert phone["alias"] in server.ask("/text").text


def test_the_report_is_there_once_it_is_made(server: Served, tmp_path: Path) -> None:
    answer = server.ask("/report")
    assert (answer.status, "the report" in answer.text) == (200, True)
    assert "script-src" not in answer.headers["content-security-policy"]
    young = write_run(tmp_path / "young")
    with served(lambda: young.root) as other:
        assert other.ask("/report").status == 404


def test_events_come_as_the_run_goes_on(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    run.rewrite_run(ended_s=None)
    with served(lambda: run.root) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", "/events")
        stream = connection.getresponse()
        assert stream.getheader("content-type", "").startswith("text/event-stream")
        states = [_state(stream)]
        run.rewrite_run(ended_s=1.0)
        while states[-1] != "ended":
            states.append(_state(stream))
        assert states[0] == "running"
        connection.close()


def _state(stream: http.client.HTTPResponse) -> str:
    while not (line := stream.readline()).startswith(b"data: "):
        assert line, "the stream ended"
    return str(json.loads(line[6:])["state"])


def test_a_run_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with served(lambda: tmp_path) as server:
        answer = server.ask("/state.json")
    assert (answer.status, "run.json" in json.loads(answer.text)["error"]) == (503, True)


def test_the_latest_run_may_become_another_one(run: Path, tmp_path: Path) -> None:
    newer = write_run(tmp_path / "newer")
    newer.rewrite_run(run_id="newer", ended_s=None)
    folders = iter([run, newer.root])
    with served(lambda: next(folders, newer.root)) as server:
        seen = {json.loads(server.ask("/state.json").text)["run_id"]}
        while "newer" not in seen:
            seen.add(json.loads(server.ask("/state.json").text)["run_id"])
    assert seen == {"run", "newer"}


def test_a_port_that_is_taken_says_what_to_type() -> None:
    with listening(None, 0) as taken:
        port = taken.getsockname()[1]
        assert address_of(taken) == f"http://127.0.0.1:{port}/"
        with pytest.raises(UsageError, match="--port 0"):
            listening(None, port)


def test_the_command_serves_until_a_signal(run: Path, tmp_path: Path) -> None:
    process = start_fleet(tmp_path, "serve", str(run), "--port", "0")
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    port = int(address.rstrip("/").rpartition(":")[2])
    try:
        assert address.startswith("http://127.0.0.1:")
        assert json.loads(Served(port).ask("/state.json").text)["run_id"] == "run"
    finally:
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (130, "")
