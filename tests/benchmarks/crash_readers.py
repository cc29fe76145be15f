"""`python -m tests.benchmarks.crash_readers`: this project's report reader beside pycrashreport.

Both get the same files in one run. To read a report is to construct it and to ask for its type,
its time and its process, which is less than pycrashreport's own command line asks. The victim and
its bytes are what each one's public interface names.
"""

from __future__ import annotations

import importlib
import io
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from orchestrator.evidence.listing import Interest, row_of
from orchestrator.evidence.parse import parse_reports
from tests.evidence.factory import APP, FIXTURES, crash, jetsam, process

if TYPE_CHECKING:
    from collections.abc import Iterator

MADE = {
    "two reports joined": jetsam(process()) + b"\n" + crash(),
    "a cut report, then a whole one": jetsam(process())[:-30] + b"\n" + crash(),
    "not UTF-8": jetsam(process("Soak\xff")).replace(b"\\u00ff", b"\xff"),
    "UTF-16": jetsam(process()).decode().encode("utf-16"),
    "killed after a daemon": jetsam(
        process("assetsd", pid=88, rpages=100, killDelta=1), process(killDelta=2)
    ),
    "relaunched, two pids": jetsam(process(pid=400), process(pid=501, reason=None)),
    "processes of a wrong type": jetsam(None, 5, process()),
}


@dataclass(frozen=True)
class Reading:
    """What one reader made of one file."""

    error: str | None  # what it raised
    victim: str | None = None
    mib: float | None = None
    note: str = ""

    @property
    def cells(self) -> str:
        read = f"raises {self.error}" if self.error else f"yes{self.note}"
        size = "" if self.mib is None else f", {self.mib:.0f} MiB"
        return f"{read} | {_printable(self.victim)}{size}" if self.victim else f"{read} | "


def files() -> dict[str, bytes]:
    """Return all files by name."""
    found = {
        path.relative_to(FIXTURES).as_posix(): path.read_bytes()
        for path in sorted(FIXTURES.rglob("*.ips*"))
        if path.is_file()
    }
    return found | MADE


def read_here(content: bytes) -> Reading:
    """Read with this project; of several reports the first that names a victim counts."""
    try:
        rows = [row_of(parsed, Interest(APP)) for parsed in parse_reports(content, "r")]
    except Exception as error:  # noqa: BLE001 - that is what is compared
        return Reading(type(error).__name__)
    row = next((row for row in rows if row["parsed"]), rows[0])
    note = "" if row["parsed"] else f", as unreadable: {row['error']}"
    note += f", {len(rows)} reports" if len(rows) > 1 else ""
    victim, mib = row.get("victim") or row.get("process"), row.get("footprint_mib")
    return Reading(
        None, str(victim) if victim else None, mib if isinstance(mib, float) else None, note
    )


def read_there(content: bytes) -> Reading:
    """Read with pycrashreport, as its command line opens a file."""
    library = importlib.import_module("pycrashreport.crash_report")
    raw = io.BytesIO(content)
    raw.name = "report.ips"  # the library asks files for it
    file = io.TextIOWrapper(raw, encoding="utf-8")
    try:
        report = library.get_crash_report_from_file(file)
        _ = report.bug_type, report.timestamp
        name = report.name
    except Exception as error:  # noqa: BLE001 - that is what is compared
        return Reading(type(error).__name__)
    return Reading(None, name)


def table() -> Iterator[str]:
    """Yield the lines of the comparison, Markdown."""
    there = f"pycrashreport {version('pycrashreport')}"
    yield f"| report | read here | victim, bytes | {there} reads | victim, bytes |"
    yield "|---|---|---|---|---|"
    readings = {
        name: (read_here(content), read_there(content)) for name, content in files().items()
    }
    for name, (here, other) in readings.items():
        yield f"| {name} | {here.cells} | {other.cells} |"
    counts = [_counts([pair[index] for pair in readings.values()]) for index in (0, 1)]
    yield f"| **{len(readings)} files** | {counts[0]} | {counts[1]} |"


def _counts(readings: list[Reading]) -> str:
    read = sum(reading.error is None for reading in readings)
    named = sum(reading.victim is not None for reading in readings)
    sized = sum(reading.mib is not None for reading in readings)
    return f"{read} without raising | {named} named, {sized} with bytes"


def _printable(text: str | None) -> str:
    # What would end a cell or be read as markup is left out.
    return "".join(c for c in text or "" if c.isprintable() and c not in "|<>&\\`")


if __name__ == "__main__":
    print("\n".join(table()))
