"""The history database. It is derived: lost, it is made again from the run directories.

Only baselines and calibrations live nowhere else; a rebuild carries them over where the old file
can still be read. One connection per use, so that no lock outlives a command.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.calibration import Calibration, CalibrationKey
from orchestrator.domain.errors import FleetError
from orchestrator.history.entry import PhoneEntry, RunEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DATABASE_NAME: Final = "history.sqlite3"  # beside the run directories
LOCK_WAIT_S: Final = 5.0
_VERSION: Final = 2  # 2 added calibrations; the schema makes what an older file lacks
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS run (
  run_id TEXT PRIMARY KEY, started_s REAL NOT NULL, outcome TEXT NOT NULL,
  exit_code INTEGER NOT NULL, folder TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS phone (
  run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE, udid TEXT NOT NULL,
  alias TEXT NOT NULL, model TEXT NOT NULL, place INTEGER NOT NULL,
  entry TEXT NOT NULL, -- the whole phone as JSON, the columns are what is searched for
  PRIMARY KEY (run_id, udid)) STRICT;
CREATE INDEX IF NOT EXISTS run_by_time ON run (started_s);
CREATE TABLE IF NOT EXISTS baseline (
  name TEXT NOT NULL, run_id TEXT NOT NULL, set_at_s REAL NOT NULL,
  PRIMARY KEY (name, run_id)) STRICT;
CREATE TABLE IF NOT EXISTS calibration (
  product_type TEXT NOT NULL, os_build TEXT NOT NULL, entitled INTEGER NOT NULL,
  virtual INTEGER NOT NULL, measured_s REAL NOT NULL,
  entry TEXT NOT NULL, -- the whole calibration as JSON
  PRIMARY KEY (product_type, os_build, entitled, virtual)) STRICT;
"""


class HistoryError(FleetError):
    """The history cannot be read or written; run directories are never touched by it."""


class History:
    """Runs and baselines of one database file."""

    def __init__(self, path: Path, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self.path = path
        self._lock_wait_s = lock_wait_s

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection inside one transaction, errors translated."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=self._lock_wait_s)) as connection:
                connection.execute("PRAGMA foreign_keys = ON")
                self._prepare(connection)
                with connection:
                    yield connection
        except (sqlite3.Error, msgspec.DecodeError, OSError) as error:
            raise HistoryError(f"{self.path}: {error}", remedy=_remedy(error)) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == _VERSION:
            return
        if version > _VERSION:
            raise HistoryError(f"{self.path} was written by a newer fleet (schema {version})")
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")

    def record(self, run: RunEntry) -> None:
        """Keep a run; one that is known already is replaced.

        Raises:
            HistoryError: If the database is locked, damaged or not writable.
        """
        with self._connected() as connection:
            connection.execute("DELETE FROM run WHERE run_id = ?", (run.run_id,))
            connection.execute(
                "INSERT INTO run VALUES (?, ?, ?, ?, ?)",
                (run.run_id, run.started_s, run.outcome, run.exit_code, run.folder),
            )
            connection.executemany(
                "INSERT INTO phone VALUES (?, ?, ?, ?, ?, ?)",
                [_row(run.run_id, place, phone) for place, phone in enumerate(run.phones)],
            )

    def runs(self, *, newest: int | None = None) -> list[RunEntry]:
        """Return the runs, oldest first; with `newest` only that many of the latest.

        Raises:
            HistoryError: If the database is locked or damaged.
        """
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT * FROM run ORDER BY started_s DESC, run_id DESC LIMIT ?",
                (-1 if newest is None else newest,),
            ).fetchall()
            return [_run(connection, row) for row in reversed(rows)]

    def find(self, name: str) -> list[RunEntry]:
        """Return the runs whose id begins with a text, oldest first."""
        return [run for run in self.runs() if run.run_id.startswith(name)] if name else []

    def set_baseline(self, name: str, run_ids: Sequence[str]) -> None:
        """Make a set of recorded runs a baseline, in place of an older one of that name.

        Raises:
            HistoryError: If a run is not recorded, or the database cannot be written.
        """
        now_s = time.time()
        with self._connected() as connection:
            known = {run_id for (run_id,) in connection.execute("SELECT run_id FROM run")}
            missing = [run_id for run_id in run_ids if run_id not in known]
            if missing:
                raise HistoryError(f"{', '.join(missing)} is not in the history")
            connection.execute("DELETE FROM baseline WHERE name = ?", (name,))
            connection.executemany(
                "INSERT INTO baseline VALUES (?, ?, ?)",
                [(name, run_id, now_s) for run_id in dict.fromkeys(run_ids)],
            )

    def baselines(self) -> dict[str, list[str]]:
        """Return the run ids of every baseline, by its name.

        Raises:
            HistoryError: If the database is locked or damaged.
        """
        found: dict[str, list[str]] = {}
        with self._connected() as connection:
            for name, run_id in connection.execute(
                "SELECT name, run_id FROM baseline ORDER BY name, run_id"
            ):
                found.setdefault(name, []).append(run_id)
        return found

    def calibrate(self, calibration: Calibration) -> None:
        """Keep a calibration, in place of an older one of the same key.

        Raises:
            HistoryError: If the database cannot be written.
        """
        key, entry = calibration.key, msgspec.json.encode(calibration).decode()
        with self._connected() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO calibration VALUES (?, ?, ?, ?, ?, ?)",
                (
                    key.product_type,
                    key.os_build,
                    key.entitled,
                    key.virtual,
                    calibration.measured_s,
                    entry,
                ),
            )

    def calibrations(self) -> dict[CalibrationKey, Calibration]:
        """Return what was measured, by key, oldest first.

        Raises:
            HistoryError: If the database is locked or damaged.
        """
        with self._connected() as connection:
            rows = connection.execute("SELECT entry FROM calibration ORDER BY measured_s")
            found = [msgspec.json.decode(entry, type=Calibration) for (entry,) in rows]
        return {calibration.key: calibration for calibration in found}


def _remedy(error: Exception) -> str:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return "Another command writes to it: try again"
    if isinstance(error, OSError | sqlite3.OperationalError):
        return "Run directories are not affected"
    return "Run directories are not affected: `fleet history --rebuild` makes it again from them"


def _row(run_id: str, place: int, phone: PhoneEntry) -> tuple[str, str, str, str, int, str]:
    entry = msgspec.json.encode(phone).decode()
    return run_id, phone.udid, phone.alias, phone.stamps.model, place, entry


def _run(connection: sqlite3.Connection, row: tuple[str, float, str, int, str]) -> RunEntry:
    run_id, started_s, outcome, exit_code, folder = row
    entries = connection.execute(
        "SELECT entry FROM phone WHERE run_id = ? ORDER BY place", (run_id,)
    ).fetchall()
    phones = tuple(msgspec.json.decode(entry, type=PhoneEntry) for (entry,) in entries)
    return RunEntry(run_id, started_s, outcome, exit_code, folder, phones)
