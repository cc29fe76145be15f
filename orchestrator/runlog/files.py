"""Atomic whole files and append-only lines: nothing is lost when the process is killed."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from orchestrator.domain.errors import RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

D = TypeVar("D", bound=msgspec.Struct)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an error of a write the file's name: the system tells only why."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Write a whole file so that a reader sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with naming(path), temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def write_document(path: Path, document: msgspec.Struct) -> None:
    """Write a document as indented JSON, atomically."""
    replace_file(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def read_document(path: Path, kind: type[D]) -> D:
    """Read a document.

    Raises:
        RunDirectoryError: If the file is missing or does not hold such a document.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise RunDirectoryError(f"{path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunDirectoryError(f"{path}: not a {kind.__name__}: {error}") from error


class LineWriter:
    """The one writer of an append-only NDJSON file; every line is flushed to the system."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._end_torn_line(path)
        self._file = path.open("ab", buffering=0)

    @staticmethod
    def _end_torn_line(path: Path) -> None:
        # A killed writer may have left half a line: end it, so that the next line stays whole.
        if not path.exists() or path.stat().st_size == 0:
            return
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")

    def append(self, line: bytes) -> None:
        """Append one line; a missing newline is added."""
        with naming(self.path):
            self._file.write(line if line.endswith(b"\n") else line + b"\n")

    def append_document(self, document: msgspec.Struct) -> None:
        """Append a document as one line."""
        self.append(msgspec.json.encode(document))

    def close(self) -> None:
        """Sync and close the file; a closed one stays closed."""
        if self._file.closed:
            return
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> LineWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
