"""A webhook is told, again where that helps, and whatever it does the run goes on."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from orchestrator.report.webhook import DELAYS_S, Webhook, deliver, run_ended_body, signature
from tests.report.results import check, death, phone, run, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = b'{"event":"run_ended"}'


class Receiver(HTTPServer):
    """Answers with the next status each time, and keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/secret-path"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.server.got.append((dict(self.headers.items()), self.rfile.read(size)))
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status == 0:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        self.send_header("Location", self.server.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base
        pass


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_body_arrives_once_with_its_signature(receiver: Receiver) -> None:
    done = deliver(Webhook(receiver.url, "s3cret"), BODY, "run-1")
    assert (done.attempts, done.problem) == (1, None)
    ((headers, body),) = receiver.got
    assert body == BODY
    assert headers["X-Fleet-Signature-256"] == signature("s3cret", BODY)
    assert headers["X-Fleet-Delivery"] == "run-1"


def test_without_a_secret_nothing_is_signed(receiver: Receiver) -> None:
    deliver(Webhook(receiver.url), BODY, "run-1")
    assert "X-Fleet-Signature-256" not in receiver.got[0][0]


def test_the_signature_is_the_known_hmac() -> None:
    # RFC 4231, test case 2.
    assert signature("Jefe", b"what do ya want for nothing?") == (
        "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )


@pytest.mark.parametrize("answers", [[503], [500, 429], [0, 200]])
def test_a_passing_trouble_is_tried_again(receiver: Receiver, answers: list[int]) -> None:
    receiver.answers = list(answers)
    pauses: list[float] = []
    done = deliver(Webhook(receiver.url), BODY, "run-1", sleep=pauses.append)
    assert done.problem is None
    assert done.attempts == len(receiver.got)
    assert pauses == list(DELAYS_S[: done.attempts - 1])


def test_it_gives_up_after_the_last_attempt(receiver: Receiver) -> None:
    receiver.answers = [503] * 9
    done = deliver(Webhook(receiver.url), BODY, "run-1", sleep=lambda _: None)
    assert (done.attempts, done.problem) == (3, "answered 503")
    assert len(receiver.got) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 301, 302, 307])
def test_a_refusal_and_a_redirect_are_final(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    done = deliver(Webhook(receiver.url), BODY, "run-1", sleep=lambda _: None)
    assert (done.attempts, done.problem) == (1, f"answered {status}")
    assert len(receiver.got) == 1


def test_nobody_listening_is_a_problem_not_an_exception() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/secret-path"
        done = deliver(Webhook(url), BODY, "run-1", sleep=lambda _: None)
    assert done.attempts == 3
    assert done.problem is not None
    assert "cannot be reached" in done.problem
    assert "secret-path" not in done.problem + done.host


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a/b", "", "https://[", "http://", "http://a b/"]
)
def test_an_address_that_is_none_is_a_problem(url: str) -> None:
    done = deliver(Webhook(url), BODY, "run-1", sleep=lambda _: None, delays_s=())
    assert done.problem is not None


def test_the_body_names_what_failed_and_no_udid() -> None:
    judged = run(phone(death()), phone(verdict(check())))
    body = json.loads(run_ended_body(judged.summary))
    assert body["event"] == "run_ended"
    assert body["phones"][0]["failed_checks"] == ["jetsam.none"]
    assert body["phones"][1]["failed_checks"] == []
    assert death().udid not in json.dumps(body)
