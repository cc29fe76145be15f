"""The control server: accepts clients, one authenticated client at a time."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Final

from orchestrator.harness.standin.commands import MOST_COMMAND_BYTES, Answer, Clerk, Desk
from orchestrator.harness.standin.outbox import Outbox

if TYPE_CHECKING:
    from orchestrator.harness.standin.identity import Launch
    from orchestrator.harness.standin.journal import Journal

HELLO_LIMIT_S: Final = 10.0
_MOST_CLIENTS: Final = 8  # beyond it a new client is turned away
_PIECE_BYTES: Final = 64 * 1024


def listen(launch: Launch) -> socket.socket:
    """Return a listening socket: the virtual phone's unix socket, else TCP on the loopback.

    Raises:
        OSError: If the address is taken or a socket path is too long.
    """
    if launch.socket_path is None:
        return socket.create_server(("127.0.0.1", launch.port))
    launch.socket_path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(launch.socket_path))
    listener.listen()
    return listener


class Client:
    """One connection: reads commands, answers through its outbox."""

    def __init__(self, connection: socket.socket, server: ControlServer, clerk: Clerk) -> None:
        """Take a connection; `serve` reads it."""
        self._connection, self._server, self._clerk = connection, server, clerk
        self.outbox = Outbox(connection, server.journal)

    def serve(self) -> None:
        """Answer commands until the client leaves, breaks the protocol or is replaced."""
        self._connection.settimeout(HELLO_LIMIT_S)
        rest = b""
        try:
            while piece := self._connection.recv(_PIECE_BYTES):
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > MOST_COMMAND_BYTES or not all(map(self._handle, lines)):
                    return
        except OSError:
            return
        finally:
            self.close()
            self._server.forget(self)

    def _handle(self, line: bytes) -> bool:
        """Answer a line and return whether the connection stays open."""
        if len(line) > MOST_COMMAND_BYTES:
            return False
        answer = self._clerk.answer(line)
        if answer.admits:
            self._connection.settimeout(None)
            self._server.admit(self)
        self._post(answer)
        if answer.closes:
            self.outbox.drain(HELLO_LIMIT_S)
        return not answer.closes

    def _post(self, answer: Answer) -> None:
        if answer.reply is None:
            return
        line = json.dumps(answer.reply, separators=(",", ":")).encode() + b"\n"
        self.outbox.post(line, answer.stream_from)

    def close(self) -> None:
        """Close the connection; wakes whoever reads or writes it."""
        self.outbox.close()
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        finally:
            self._connection.close()


class ControlServer:
    """Serves clients from threads until the process ends."""

    def __init__(self, listener: socket.socket, desk: Desk, token: str, journal: Journal) -> None:
        """Serve nobody yet.

        Args:
            listener: Accepts clients.
            desk: Where commands go.
            token: What a client must present.
            journal: Where records are sent from.
        """
        self._listener, self._desk, self._token = listener, desk, token
        self.journal = journal
        self._lock = threading.Lock()
        self._clients: set[Client] = set()
        self._current: Client | None = None

    def start(self) -> None:
        """Accept clients from now on."""
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            self._welcome(connection)

    def _welcome(self, connection: socket.socket) -> None:
        with self._lock:
            if len(self._clients) >= _MOST_CLIENTS:
                connection.close()
                return
            client = Client(connection, self, Clerk(self._desk, self._token))
            self._clients.add(client)
        threading.Thread(target=client.serve, name="client", daemon=True).start()

    def admit(self, client: Client) -> None:
        """Make an authenticated client the only one."""
        with self._lock:
            replaced, self._current = self._current, client
        if replaced is not None and replaced is not client:
            replaced.close()

    def forget(self, client: Client) -> None:
        """Drop a client that has left."""
        with self._lock:
            self._clients.discard(client)
            if self._current is client:
                self._current = None

    def close(self, drain_limit_s: float) -> None:
        """Send the client what is left, for a limited time, and stop listening."""
        with self._lock:
            current = self._current
        if current is not None:
            current.outbox.drain(drain_limit_s)
        self._listener.close()
