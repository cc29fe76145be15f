"""A recorded run, written once more as far as it was at some moment: for tests and pictures.

As a program it grows a run in real time, with as many phones as wanted:
`python -m tests.live.replay SOURCE... TARGET --phones 50`; then `fleet watch TARGET`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.runlog.layout import RunPaths

NS = 1e9


@dataclass(slots=True)
class Source:
    """One phone of a recorded run."""

    planned: dict[str, Any]
    folder: Path
    events: list[dict[str, Any]]  # at_s since the start of its run
    records: list[tuple[float, bytes]]  # seconds since the start of its run


def sources_of(run: Path) -> list[Source]:
    paths = RunPaths(run)
    started_s = json.loads(paths.run.read_bytes())["started_s"]
    plan = json.loads(paths.plan.read_bytes())
    events = [json.loads(line) for line in paths.events.read_bytes().splitlines()]
    sources = []
    for phone in plan["phones"]:
        own = [e | {"at_s": e["at_s"] - started_s} for e in events if e["udid"] == phone["udid"]]
        launched_s = next((e["at_s"] for e in own if e["kind"] == "launched"), 0.0)
        device = paths.device(phone["directory"])
        lines = device.attempt(1).stream(1).read_bytes().splitlines(keepends=True)
        records = [(launched_s + json.loads(line)["t_ns"] / NS, line) for line in lines]
        sources.append(Source(phone, device.root, own, records))
    return sources


@dataclass(slots=True)
class Replay:
    """Writes a run directory up to a moment, and on from there."""

    target: RunPaths
    plan: dict[str, Any]
    run: dict[str, Any]
    phones: list[Source]
    epoch_s: float  # wall clock of its start
    stagger_s: float = 0.0
    _at_s: float = -1.0

    @classmethod
    def of(
        cls,
        runs: list[Path],
        target: Path,
        *,
        phones: int | None,
        epoch_s: float,
        stagger_s: float = 0.0,
    ) -> Replay:
        """Begin a copy of so many phones; None for those of the runs, as they are."""
        first = RunPaths(runs[0])
        plan, run = json.loads(first.plan.read_bytes()), json.loads(first.run.read_bytes())
        found = [source for run_path in runs for source in sources_of(run_path)]
        copies = found
        if phones is not None:
            copies = [_copy(found[index % len(found)], index) for index in range(phones)]
        plan |= {"phones": [copy.planned for copy in copies]}
        run |= {"started_s": epoch_s, "ended_s": None, "owner_pid": os.getpid()}
        replay = cls(RunPaths(target), plan, run, copies, epoch_s, stagger_s)
        target.mkdir(parents=True)
        replay.target.run.write_text(json.dumps(run))
        replay.target.plan.write_text(json.dumps(plan))
        return replay

    @property
    def length_s(self) -> float:
        ends = [float(source.events[-1]["at_s"]) for source in self.phones]
        return max(ends) + self.stagger_s * len(self.phones)

    def up_to(self, at_s: float) -> None:
        """Write what happened until so many seconds after the start."""
        before, self._at_s = self._at_s, at_s
        with self.target.events.open("ab") as file:
            for index, source in enumerate(self.phones):
                self._phone(source, before - index * self.stagger_s, at_s - index * self.stagger_s)
                late_s = self.epoch_s + index * self.stagger_s
                for event in source.events:
                    if before < event["at_s"] + index * self.stagger_s <= at_s:
                        moved = event | {"at_s": event["at_s"] + late_s}
                        file.write(json.dumps(moved).encode() + b"\n")

    def _phone(self, source: Source, before: float, at_s: float) -> None:
        attempt = self.target.device(source.planned["directory"]).attempt(1)
        fresh = [line for moment, line in source.records if before < moment <= at_s]
        if fresh:
            attempt.stream(1).parent.mkdir(parents=True, exist_ok=True)
            with attempt.stream(1).open("ab") as file:
                file.writelines(fresh)
        health = source.folder / "attempts" / "1" / "health.json"
        if at_s > 1 and health.exists() and not attempt.health.exists():
            attempt.root.mkdir(parents=True, exist_ok=True)
            attempt.health.write_bytes(health.read_bytes())

    def end(self) -> None:
        self.run["ended_s"] = self.epoch_s + self._at_s
        self.target.run.write_text(json.dumps(self.run))


def _copy(source: Source, index: int) -> Source:
    udid = f"{index:08d}-{'0' * 15}A"
    alias = f"bench-{index + 1:02d}"
    planned = source.planned | {"udid": udid, "alias": alias, "directory": alias}
    events = [event | {"udid": udid} for event in source.events]
    return Source(planned, source.folder, events, source.records)


def main() -> None:
    from orchestrator.soak.locks import Claim, LockKey, lock_folder, phones_held

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="SOURCE... TARGET")
    parser.add_argument("--phones", type=int, default=2)
    parser.add_argument("--stagger", type=float, default=0.2, help="seconds from phone to phone")
    parser.add_argument("--begin", type=float, default=0.0, help="seconds that are over at once")
    asked = parser.parse_args()
    *runs, target = asked.runs
    began_s = time.time() - asked.begin
    replay = Replay.of(runs, target, phones=asked.phones, epoch_s=began_s, stagger_s=asked.stagger)
    claim = Claim(replay.run["run_id"], replay.length_s)
    # Held as a run holds its phones: what is watched is a run that goes on.
    with phones_held([LockKey(f"replay-{os.getpid()}", "replay")], claim, folder=lock_folder()):
        for _ in itertools.count():
            at_s = time.time() - began_s
            replay.up_to(at_s)
            if at_s > replay.length_s:
                break
            time.sleep(0.25)
    replay.end()


if __name__ == "__main__":
    main()
