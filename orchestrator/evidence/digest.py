"""The list of `fleet crashlog parse` for people: a line or two per report, without hostile text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.domain.counting import counted
from orchestrator.evidence.describe import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.evidence.listing import Row


def digest_lines(row: Row) -> Iterator[str]:
    """Yield the lines of one report."""
    time = row["utc"] or "no time"
    zone = " (zone unknown)" if row["utc_naive"] else ""
    yield printable(f"{time}{zone}  {row['kind']}  {_sentence(row)}")
    yield f"    {printable(str(row['file']))}"
    frames = row.get("frames")
    for frame in frames if isinstance(frames, list) else []:
        yield f"    at {printable(str(frame))}"


def total_line(counts: Mapping[str, int], copies: int = 0) -> str:
    """Return how many reports there were of which kind, and how many copies were passed over."""
    total = sum(counts.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    listed = f"{counted(total, 'report')}{f': {kinds}' if kinds else ''}"
    noun = "copy" if copies == 1 else "copies"
    return f"{listed}; {copies:,} {noun} of the same incident not listed" if copies else listed


def _sentence(row: Row) -> str:
    if row["ignored"]:
        return f"ignored: {row['why']}"
    if not row["parsed"]:
        restart = "; the phone restarted" if row.get("device_rebooted") else ""
        return f"not readable: {row['error']}{restart}"
    if row["kind"] == "jetsam":
        return _jetsam(row)
    if row["device_rebooted"]:
        return f"the phone restarted: {row['message'] or 'no text'}"
    return _event(row)


def _jetsam(row: Row) -> str:
    if not row["victims"]:
        return "nothing was killed"
    size = row["footprint_mib"]
    at = f" at {size:.0f} MiB" if isinstance(size, float) else ""
    alive = "; the app was not killed" if row["app_killed"] is False else ""
    blamed = f"; blame: {row['blame']}" if row["blame"] else ""
    place = " in front" if row["foreground"] else ""
    more = f"; {row['victims']} victims" if row["victims"] != 1 else ""
    return f"{row['victim']} [{row['pid']}] killed{place}{at}: {row['reason']}{more}{alive}{blamed}"


def _event(row: Row) -> str:
    facts = [row[key] for key in ("exception", "signal", "code", "event", "message") if row[key]]
    who = row["process"] or "a process"
    if row["pid"] is not None:
        who = f"{who} [{row['pid']}]"
    ending = "" if row["fatal"] is not False else " (not fatal)"
    said = ": " + ", ".join(map(str, facts)) if facts else ""
    return f"{who}{said}{ending}"
