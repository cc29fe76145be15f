"""How far a run is, from its directory alone: it can be read while the run goes on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.launch_part import relaunches_of
from orchestrator.runlog.documents import PlanDocument, RunDocument
from orchestrator.runlog.events import launch_number, read_events
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
    tokens_total: int | None  # as the app last said, of the present launch
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
    marks = _marks(paths)
    duration_s = plan.scenario.get("duration_s")
    limit_s = float(duration_s) if isinstance(duration_s, int | float) else None
    launches = relaunches_of(plan.scenario) + 1
    return RunProgress(
        run_id=run.run_id,
        state="ended" if run.ended_s is not None else "running" if owner_lives else "left",
        owner_pid=run.owner_pid,
        started_s=run.started_s,
        ended_s=run.ended_s,
        phones=[
            _phone(paths, phone, marks.get(phone.udid, _Mark()), now_s, (limit_s, launches))
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


@dataclass(slots=True)
class _Mark:
    """How far the host says that a phone is."""

    phase: str = "waiting"
    attempt: int = 1
    launch: int = 1


def _marks(paths: RunPaths) -> dict[str, _Mark]:
    marks: dict[str, _Mark] = {}
    for event in read_events(paths.events):
        if event.udid is None:
            continue
        mark = marks.setdefault(event.udid, _Mark())
        if event.attempt is not None and event.attempt != mark.attempt:
            mark.attempt, mark.launch = event.attempt, 1
        if event.kind == "phase":
            mark.phase = str(event.facts.get("name", ""))
        elif event.kind == "launched":
            mark.launch = launch_number(event)
        elif event.kind == "session_ended":
            mark.phase = "ended"
    return marks


def _phone(
    paths: RunPaths,
    phone: PlannedPhone,
    mark: _Mark,
    now_s: float,
    planned: tuple[float | None, int],
) -> PhoneProgress:
    """Return one phone; `planned` holds the inference time of all launches and their number."""
    limit_s, launches = planned
    stream = paths.device(phone.directory).attempt(mark.attempt).stream(mark.launch)
    tail = _tail(stream)
    age_s = max(0.0, now_s - stream.stat().st_mtime) if stream.exists() else None
    left_s = None
    if mark.phase == "soak" and limit_s is not None and tail.t_ns is not None:
        done_s = limit_s / launches * (mark.launch - 1) + tail.t_ns / 1e9
        left_s = max(0.0, limit_s - done_s)
    return PhoneProgress(
        alias=phone.alias,
        udid=phone.udid,
        phase=mark.phase,
        attempt=mark.attempt,
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
