"""What is sent to one client: replies, and records straight from the journal file."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

    from orchestrator.harness.standin.journal import Journal

_MOST_REPLIES: Final = 64
_PIECE_BYTES: Final = 256 * 1024  # holds at least one line of 64 KiB


class Outbox:
    """Sends from a thread of its own, so that a slow client never delays the pipeline."""

    def __init__(self, connection: socket.socket, journal: Journal) -> None:
        """Start the thread.

        Args:
            connection: Written by this thread only.
            journal: Read through a descriptor of its own.
        """
        self._connection, self._journal = connection, journal
        self._changed = journal.grown
        self._replies: deque[bytes] = deque()
        self._offset: int | None = None  # next byte of the journal to send
        self._sending = self._closed = False
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def post(self, reply: bytes, stream_from: int | None) -> None:
        """Queue a reply; records follow it from a byte of the journal where one is given.

        Waits while 64 replies are queued: a client that does not read its replies is not answered.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._replies) < _MOST_REPLIES or self._closed)
            self._replies.append(reply)
            if stream_from is not None:
                self._offset = stream_from
            self._changed.notify_all()

    def drain(self, limit_s: float) -> bool:
        """Return whether all was sent within `limit_s`, or nobody listens any more."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._closed or not (self._has_work() or self._sending), limit_s
            )

    def close(self) -> None:
        """Send no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_work(self) -> bool:
        behind = self._offset is not None and self._offset < self._journal.size_bytes
        return bool(self._replies) or behind

    def _run(self) -> None:
        source = os.open(self._journal.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while (piece := self._next_piece(source)) is not None:
                self._connection.sendall(piece)
        except OSError:
            self.close()  # the client is gone; what it missed is in the journal
        finally:
            os.close(source)

    def _next_piece(self, source: int) -> bytes | None:
        """Return replies, else whole lines of the journal, or None once it is closed."""
        with self._changed:
            self._sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._has_work())
            if self._closed:
                return None
            self._sending = True
            if self._replies:
                piece = b"".join(self._replies)
                self._replies.clear()
                return piece
            return self._read_lines(source)

    def _read_lines(self, source: int) -> bytes:
        start = self._offset or 0
        size = min(_PIECE_BYTES, self._journal.size_bytes - start)
        piece = os.pread(source, size, start)
        piece = piece[: piece.rfind(b"\n") + 1]
        self._offset = start + len(piece)
        return piece
