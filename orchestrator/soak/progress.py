"""How far a run is, from its directory alone: it can be read while the run goes on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.runlog.documents import PlanDocument, RunDocument
from orchestrator.runlog.events import read_events
from orchestrator.runlog.files import read_document

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.runlog.documents import PlannedPhone
    from orchestrator.runlog.layout import RunPaths

_TAIL_BYTES: Final = 256 * 1024  # holds some records of every kind


class PhoneProgress(msgspec.Struct, frozen=True):
    """One phone of a run."""

    alias: str
    udid: str
    phase: str  # as the session names it; `waiting` before the first, `ended` after the last
    attempt: int
    tokens_total: int | None  # as the app last said
    inference_left_s: float | None  # estimated; None where nothing can be said
    last_record_age_s: float | None  # since the newest record was written


class RunProgress(msgspec.Struct, frozen=True):
    """A run."""

    run_id: str
    state: str  # `running`, `ended`, or `left`: its process died, `fleet resume` goes on with it
    owner_pid: int
    started_s: float
    ended_s: float | None
    phones: list[PhoneProgress]


class _Sample(msgspec.Struct, frozen=True):
    kind: str
    t_ns: int
    tokens_total: int | None = None


@dataclass(frozen=True, slots=True)
class _Tail:
    t_ns: int | None  # of the newest record
    tokens_total: int | None


def run_progress(paths: RunPaths, now_s: float, *, owner_lives: bool) -> RunProgress:
    """Read a run.

    Args:
        paths: Its directory.
        now_s: Wall clock.
        owner_lives: Whether the process that runs it is there.

    Raises:
        RunDirectoryError: If it is no run directory, or has no plan yet.
    """
    run = read_document(paths.run, RunDocument)
    plan = read_document(paths.plan, PlanDocument)
    phases, attempts = _phases(paths)
    duration_s = plan.scenario.get("duration_s")
    limit_s = float(duration_s) if isinstance(duration_s, int | float) else None
    return RunProgress(
        run_id=run.run_id,
        state="ended" if run.ended_s is not None else "running" if owner_lives else "left",
        owner_pid=run.owner_pid,
        started_s=run.started_s,
        ended_s=run.ended_s,
        phones=[
            _phone(
                paths,
                phone,
                (phases.get(phone.udid, "waiting"), attempts.get(phone.udid, 1)),
                now_s,
                limit_s,
            )
            for phone in plan.phones
        ],
    )


def process_lives(pid: int) -> bool:
    """Return whether a process is there; it may be somebody else's by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _phases(paths: RunPaths) -> tuple[dict[str, str], dict[str, int]]:
    phases: dict[str, str] = {}
    attempts: dict[str, int] = {}
    for event in read_events(paths.events):
        if event.udid is None:
            continue
        attempts[event.udid] = event.attempt or 1
        if event.kind == "phase":
            phases[event.udid] = str(event.facts.get("name", ""))
        elif event.kind == "session_ended":
            phases[event.udid] = "ended"
    return phases, attempts


def _phone(
    paths: RunPaths,
    phone: PlannedPhone,
    at: tuple[str, int],
    now_s: float,
    limit_s: float | None,
) -> PhoneProgress:
    phase, attempt = at
    stream = paths.device(phone.directory).attempt(attempt).stream(1)
    tail = _tail(stream)
    age_s = max(0.0, now_s - stream.stat().st_mtime) if stream.exists() else None
    left_s = None
    if phase == "soak" and limit_s is not None and tail.t_ns is not None:
        left_s = max(0.0, limit_s - tail.t_ns / 1e9)
    return PhoneProgress(
        alias=phone.alias,
        udid=phone.udid,
        phase=phase,
        attempt=attempt,
        tokens_total=tail.tokens_total,
        inference_left_s=left_s,
        last_record_age_s=age_s,
    )


def _tail(stream: Path) -> _Tail:
    """Return what the newest records say; the file may grow meanwhile."""
    newest_ns, tokens_total = None, None
    try:
        with stream.open("rb") as file:
            file.seek(max(0, stream.stat().st_size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).splitlines()
    except OSError:
        return _Tail(None, None)
    decoder = msgspec.json.Decoder(_Sample)
    for line in lines:
        try:
            sample = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # cut at either end
        newest_ns = sample.t_ns
        if sample.tokens_total is not None:
            tokens_total = sample.tokens_total
    return _Tail(newest_ns, tokens_total)
