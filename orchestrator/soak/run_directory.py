"""Makes a run directory, writes the plan before anything else, and ends it with a manifest."""

from __future__ import annotations

import os
import platform
import secrets
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

import orchestrator
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.events import Event
from orchestrator.runlog.files import LineWriter, read_document, replace_file, write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import write_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.runlog.documents import PlanDocument


def new_run_id(now_s: float) -> str:
    """Return `<UTC>-<short id>`."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now_s))}-{secrets.token_hex(3)}"


class Remark(Protocol):
    """Takes a remark about one attempt on one phone."""

    def __call__(self, kind: str, **facts: str | float | bool | None) -> None:
        """Append it to `events.ndjson`."""
        ...


@dataclass(slots=True)
class RunRecorder:
    """The one writer of a run's own files."""

    paths: RunPaths
    document: RunDocument
    events: LineWriter

    @classmethod
    def begin(
        cls,
        output: Path,
        plan: PlanDocument,
        config_yaml: str,
        *,
        virtual: bool,
        cluster: str | None = None,
    ) -> RunRecorder:
        """Create the directory, write the plan and point `latest` at it."""
        paths = RunPaths(output / plan.run_id)
        paths.root.mkdir(parents=True)
        document = RunDocument(
            run_id=plan.run_id,
            started_s=time.time(),
            virtual=virtual,
            fleet_version=orchestrator.__version__,
            host=f"{platform.system()} {platform.release()} {platform.machine()}",
            arguments=sys.argv[1:],
            owner_pid=os.getpid(),
            cluster=cluster,
        )
        write_document(paths.run, document)
        write_document(paths.plan, plan)
        replace_file(paths.config, config_yaml.encode())
        point_latest(output, plan.run_id)
        recorder = cls(paths, document, LineWriter(paths.events))
        recorder.event("run_started")
        return recorder

    @classmethod
    def reopen(cls, paths: RunPaths) -> RunRecorder:
        """Go on with a run whose owner died; the new owner is this process.

        Raises:
            RunDirectoryError: If the directory has no readable `run.json`.
        """
        document = read_document(paths.run, RunDocument)
        document = msgspec.structs.replace(
            document, owner_pid=os.getpid(), resumed_s=[*document.resumed_s, time.time()]
        )
        write_document(paths.run, document)
        recorder = cls(paths, document, LineWriter(paths.events))
        recorder.event("run_resumed")
        return recorder

    def event(
        self,
        kind: str,
        *,
        udid: str | None = None,
        attempt: int | None = None,
        **facts: str | float | bool | None,
    ) -> None:
        """Append one remark about a phone or the run."""
        self.events.append_document(
            Event(at_s=time.time(), kind=kind, udid=udid, attempt=attempt, facts=facts)
        )

    def remark(self, kind: str, facts: Mapping[str, float]) -> None:
        """Append one remark about the host."""
        self.events.append_document(Event(at_s=time.time(), kind=kind, facts=dict(facts)))

    def finish(self, interrupted_by: str | None) -> None:
        """Write the end of the run and the manifest of its evidence."""
        self.event("run_ended", interrupted_by=interrupted_by)
        self.events.close()
        self.document = msgspec.structs.replace(
            self.document, ended_s=time.time(), interrupted_by=interrupted_by
        )
        write_document(self.paths.run, self.document)
        write_manifest(self.paths.root)


def point_latest(output: Path, run_id: str) -> None:
    """Have `latest` name a run."""
    temporary = output / f".latest.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(run_id)
    temporary.replace(output / "latest")
