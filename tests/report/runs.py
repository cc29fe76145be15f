"""Run directories for tests: an honest app's records, written with the run log's own tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.events import Event
from orchestrator.runlog.files import replace_file, write_document
from orchestrator.runlog.layout import AttemptPaths, DevicePaths, RunPaths
from tests.verdict.host_side import device_of, encode, evidence_of, plan_of, planned_phone
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import BOOT_S, PID, Spec

if TYPE_CHECKING:
    from pathlib import Path

SPEC = Spec(stop_after=120)
PHONE = planned_phone(SPEC)
DIRECTORY, UDID = PHONE.directory, PHONE.udid
PLAN = plan_of(SPEC)
APP = PLAN.app.name
EVIDENCE = evidence_of()
ROWS = tuple(App(SPEC).run())
LINES = tuple(encode(ROWS))
DIED = "2023-11-14 22:14:20.00 +0000"  # when the launch of the evidence ended


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """A run directory and the shortest ways into it."""

    root: Path

    @property
    def paths(self) -> RunPaths:
        return RunPaths(self.root)

    @property
    def device(self) -> DevicePaths:
        return self.paths.device(DIRECTORY)

    @property
    def attempt(self) -> AttemptPaths:
        return self.device.attempt(1)

    def add_report(self, name: str, content: bytes) -> None:
        replace_file(self.attempt.reports / name, content)

    def rewrite_run(self, **facts: object) -> None:
        document = msgspec.json.decode(self.paths.run.read_bytes(), type=RunDocument)
        write_document(self.paths.run, structs.replace(document, **facts))

    def rewrite_plan(self, **facts: object) -> None:
        write_document(self.paths.plan, structs.replace(PLAN, **facts))

    def rewrite_evidence(self, **facts: object) -> None:
        write_document(self.attempt.evidence, structs.replace(EVIDENCE, **facts))


def write_run(root: Path) -> WrittenRun:
    """Write a run of one phone that has ended and passes, without a manifest."""
    run = WrittenRun(root)
    write_document(run.paths.run, run_document())
    write_document(run.paths.plan, PLAN)
    write_document(run.device.device, device_of())
    write_document(run.attempt.evidence, EVIDENCE)
    whole = b"".join(LINES)
    for path in (run.attempt.stream(1), run.attempt.journal(1), run.device.telemetry):
        replace_file(path, whole)
    events = [_event("launched", BOOT_S), _event("app_exited", BOOT_S + 60)]
    replace_file(run.paths.events, b"".join(msgspec.json.encode(e) + b"\n" for e in events))
    return run


def run_document() -> RunDocument:
    return RunDocument(
        run_id="run",
        started_s=BOOT_S - 30,
        virtual=True,
        fleet_version="0.1.0",
        host="test",
        arguments=[],
        owner_pid=1,
        ended_s=BOOT_S + 90,
    )


def _event(kind: str, at_s: float) -> Event:
    return Event(at_s=at_s, kind=kind, udid=UDID, attempt=1, facts={"pid": PID})


def jetsam_report(at: str = DIED, **victim: object) -> bytes:
    """Return a JetsamEvent in which the app was killed for its own limit."""
    header = {"bug_type": "298", "timestamp": at, "incident_id": "I-1"}
    killed = {
        "name": APP,
        "pid": PID,
        "rpages": 200_000,
        "states": ["frontmost"],
        "reason": "per-process-limit",
    }
    body = {"memoryStatus": {"pageSize": 16384}, "processes": [{**killed, **victim}]}
    return f"{json.dumps(header)}\n{json.dumps(body)}".encode()
