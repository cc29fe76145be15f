"""Run directories for tests, written with the run log's own tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from orchestrator.runlog.documents import (
    AbsentPhone,
    AppExit,
    DeviceDocument,
    EvidenceDocument,
    Expectation,
    LaunchWindow,
    PlanDocument,
    PlannedApp,
    PlannedPhone,
    Requirement,
    RunDocument,
)
from orchestrator.runlog.events import Event
from orchestrator.runlog.files import replace_file, write_document
from orchestrator.runlog.layout import AttemptPaths, DevicePaths, RunPaths
from orchestrator.runlog.manifest import write_manifest

if TYPE_CHECKING:
    from pathlib import Path

APP = "SoakHarness"
UDID = "00008130-0000000000000001"
DIRECTORY = "desk-1-00000001"
LAUNCH = "11111111-2222-4333-8444-555555555555"
STARTED_S = 1_768_046_400.0  # 2026-01-10 12:00:00 UTC
PID = 501

EXPECTED = Expectation(
    memory_class="8gb",
    budget_tokens=2048,
    quantization="int8",
    digest="a" * 64,
    bits_per_weight=8.0,
    capacity_tokens=4096,
    pin_tokens=4,
)


def planned(udid: str = UDID, alias: str = "desk-1", directory: str = DIRECTORY) -> PlannedPhone:
    return PlannedPhone(
        udid=udid,
        alias=alias,
        name="Desk",
        model="iPhone 15 Pro",
        product_type="iPhone16,1",
        os="18.5",
        build="22F76",
        source="local",
        virtual=False,
        directory=directory,
        nonce="0123456789abcdef",
        expected=EXPECTED,
    )


def hello(**facts: object) -> bytes:
    """Return the first record of a launch, as a line."""
    record: dict[str, object] = {
        "kind": "hello",
        "launch": LAUNCH,
        "seq": 1,
        "t_ns": 0,
        "app": APP,
        "app_version": "1",
        "stand_in": False,
        "build": "1",
        "pid": PID,
        "device": "iPhone16,1",
        "os": "18.5",
        "os_build": "22F76",
        "wall_time_s": STARTED_S,
        "page_size": 16384,
        "physical_memory_bytes": 8_021_032_960,
        "footprint": 100 << 20,
        "host_bytes": 100 << 20,
        "available": 3276 << 20,
        "entitled": False,
        "memory_scale": 1,
        "engine": "coreml",
        "budget": 2048,
        "budget_inputs": {"class": "8gb", "policy_tokens": 2048, "model_capacity": 4096},
        "quantization": "int8",
        "policies": {"pin": "first", "long_prompt": "tail", "headroom_percent": 10.0},
        "pin_ids": [1, 2, 3, 4],
        "end_ids": [0],
        "vocab": 4096,
        "first_id": 16,
        "end_every": 64,
        "chunk": 64,
        "chunk_widths": [1, 64],
        "nonce": "0123456789abcdef",
        "run_id": "r",
        "scenario": "smoke",
        "seed": 7,
    }
    return json.dumps({**record, **facts}, separators=(",", ":")).encode() + b"\n"


def heartbeat(seq: int) -> bytes:
    """Return a small record, as a line."""
    record = {
        "kind": "heartbeat",
        "launch": LAUNCH,
        "seq": seq,
        "t_ns": seq * 10**9,
        "wall_time_s": STARTED_S + seq,
        "suspended_s": 0.0,
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


LINES = (hello(), *map(heartbeat, range(2, 12)))


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
        write_document(self.paths.run, msgspec.structs.replace(document, **facts))

    def rewrite_evidence(self, **facts: object) -> None:
        write_document(self.attempt.evidence, msgspec.structs.replace(EVIDENCE, **facts))


EVIDENCE = EvidenceDocument(
    attempt=1,
    launches=[
        LaunchWindow(number=1, pid=PID, launch=LAUNCH, started_s=STARTED_S, ended_s=STARTED_S + 60)
    ],
    exits=[AppExit(pid=PID, at_s=STARTED_S + 60, exit_code=0)],
    reports=[],
    alive_at_end=False,
    clock_offset_s=0.0,
    journal_pulled=True,
)


def write_run(
    root: Path, *phones: PlannedPhone, absent: tuple[AbsentPhone, ...] = ()
) -> WrittenRun:
    """Write a run of one phone that has ended, without a manifest."""
    run = WrittenRun(root)
    write_document(
        run.paths.run,
        RunDocument(
            run_id="r",
            started_s=STARTED_S,
            virtual=False,
            fleet_version="0.1.0",
            host="test",
            arguments=[],
            owner_pid=1,
            ended_s=STARTED_S + 90,
        ),
    )
    write_document(run.paths.plan, plan(phones or (planned(),), absent))
    write_document(run.device.device, _device())
    write_document(run.attempt.evidence, EVIDENCE)
    replace_file(run.attempt.stream(1), b"".join(LINES))
    replace_file(run.attempt.journal(1), b"".join(LINES))
    replace_file(run.device.telemetry, b"".join(LINES))
    events = [
        Event(at_s=STARTED_S, kind="launched", udid=UDID, attempt=1, facts={"pid": PID}),
        Event(at_s=STARTED_S + 60, kind="app_exited", udid=UDID, attempt=1, facts={"pid": PID}),
    ]
    replace_file(run.paths.events, b"".join(msgspec.json.encode(e) + b"\n" for e in events))
    return run


def plan(phones: tuple[PlannedPhone, ...], absent: tuple[AbsentPhone, ...]) -> PlanDocument:
    return PlanDocument(
        run_id="r",
        seed=7,
        scenario={"name": "smoke"},
        requires=Requirement(checks=["soak.completed", "telemetry.complete"]),
        thresholds={},
        headroom_percent=10.0,
        app=PlannedApp(kind="swift", bundle_id="x", name=APP, package_sha256="0" * 64),
        phones=list(phones),
        absent=list(absent),
    )


def seal(run: WrittenRun) -> None:
    """Write the manifest, as the end of a run does."""
    write_manifest(run.root)


def _device() -> DeviceDocument:
    return DeviceDocument(
        udid=UDID,
        alias="desk-1",
        name="Desk",
        model="iPhone 15 Pro",
        product_type="iPhone16,1",
        os="18.5",
        build="22F76",
        virtual=False,
        source="local",
        physical_memory_bytes=8_021_032_960,
        memory_class="8gb",
        clock_offset_s=0.0,
    )


def jetsam_report(pid: int = PID, at: str = "2026-01-10 12:01:00.00 +0000") -> bytes:
    """Return a JetsamEvent in which the app was killed for its own limit."""
    header = {"bug_type": "298", "timestamp": at, "incident_id": f"I-{pid}"}
    victim = {
        "name": APP,
        "pid": pid,
        "rpages": 200_000,
        "states": ["frontmost"],
        "reason": "per-process-limit",
    }
    body = {"memoryStatus": {"pageSize": 16384}, "processes": [victim]}
    return f"{json.dumps(header)}\n{json.dumps(body)}".encode()
