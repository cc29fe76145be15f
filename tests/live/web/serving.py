"""A server of a run in a thread, on a free port."""

from __future__ import annotations

import http.client
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.live.web.server import listening, server_for
from orchestrator.live.web.source import RunSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from orchestrator.runlog.documents import RunDocument


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Served:
    """Where it listens."""

    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, fields, answer.read().decode())
        finally:
            connection.close()


@contextmanager
def served(
    folder: Callable[[], Path],
    *,
    any_host: bool = False,
    owner_lives: Callable[[RunDocument], bool] = lambda _: True,
) -> Iterator[Served]:
    with listening(None, 0) as listener:
        server = server_for(RunSource(folder, owner_lives), any_host=any_host)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield Served(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive(), "the server did not end while streams were open"
