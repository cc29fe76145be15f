"""A run directory, finished or killed at any instant, to what a verdict needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.report.recovery import evidence_from_events
from orchestrator.runlog.documents import (
    DeviceDocument,
    EvidenceDocument,
    HealthDocument,
    PlanDocument,
    RunDocument,
)
from orchestrator.runlog.events import read_events
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import AttemptPaths, DevicePaths, RunPaths
from orchestrator.runlog.lines import read_lines
from orchestrator.runlog.manifest import differing_files, evidence_files
from orchestrator.runlog.merge import AttemptMerge
from orchestrator.runlog.telemetry import Hello, MalformedRecordError, decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

D = TypeVar("D", bound=msgspec.Struct)

REDACTED_NAME: Final = "redacted.json"
_REMEDY: Final = "Name a directory below runs/, or runs/latest."


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The run-wide part of a run directory."""

    paths: RunPaths
    run: RunDocument
    plan: PlanDocument | None  # None: the run was killed before it had one
    differences: tuple[str, ...] | None  # from the manifest; None where there is none

    @property
    def finished(self) -> bool:
        """Whether the run came to its own end, interrupted or not."""
        return self.run.ended_s is not None

    def differences_of(self, directory: str) -> tuple[str, ...] | None:
        """Return the files that differ from the manifest and bear on one phone.

        These are the phone's own and those of the whole run.
        """
        if self.differences is None:
            # A run that came to its end has a manifest: whoever took it away hides something.
            return (self.paths.manifest.name,) if self.finished else None
        own = f"devices/{directory}/"
        return tuple(
            name for name in self.differences if name.startswith(own) or "devices/" not in name
        )


def read_run(root: Path) -> RunRecord:
    """Read the run-wide documents.

    Raises:
        RunDirectoryError: Naming what is missing, where this is no run directory.
    """
    paths = RunPaths(root)
    for path in (root, paths.run):
        if not path.exists():
            raise RunDirectoryError(
                f"{root} is not a run directory: {path.name} is missing", remedy=_REMEDY
            )
    if (root / REDACTED_NAME).exists():
        raise RunDirectoryError(f"{root} is a redacted copy: its reports are the original's")
    run = read_document(paths.run, RunDocument)
    if run.ended_s is None and not paths.plan.exists():
        return RunRecord(paths, run, None, None)
    plan = read_document(paths.plan, PlanDocument)
    differences = differing_files(root)
    return RunRecord(paths, run, plan, None if differences is None else tuple(differences))


@dataclass(frozen=True, slots=True)
class PhoneRecord:
    """One phone's part of a run directory; everything may be missing."""

    root: Path  # of the run
    paths: DevicePaths
    device: DeviceDocument | None
    attempts: tuple[tuple[AttemptPaths, EvidenceDocument], ...]  # in order; the last is judged

    @property
    def evidence(self) -> EvidenceDocument | None:
        """What the host saw of the attempt that is judged."""
        return self.attempts[-1][1] if self.attempts else None

    @property
    def span_s(self) -> float | None:
        """Seconds from the first launch to the end of the last, None where either is unknown."""
        launches = self.evidence.launches if self.evidence else []
        if not launches or launches[-1].ended_s is None:
            return None
        return max(0.0, launches[-1].ended_s - launches[0].started_s)

    def lines(self) -> Iterator[bytes]:
        """Yield the raw telemetry: the merged file as it stands, else merged on the way."""
        if self.paths.telemetry.exists():
            yield from (line.content for line in read_lines(self.paths.telemetry))
        elif self.attempts:
            yield from AttemptMerge(self.attempts[-1][0])

    def hello(self) -> Hello | None:
        """Return how the app introduced itself, None where the first record is another one."""
        try:
            record = decode_record(next(self.lines(), b""))
        except MalformedRecordError:
            return None
        return record if isinstance(record, Hello) else None

    def health(self) -> HealthDocument | None:
        """Return the readings before the attempt that is judged."""
        return _optional(self.attempts[-1][0].health, HealthDocument) if self.attempts else None

    def files(self) -> tuple[str, ...]:
        """Return the phone's evidence, as paths relative to the run."""
        return tuple(self.name_of(path) for path in evidence_files(self.paths.root))

    def name_of(self, path: Path) -> str:
        """Return a file as a path relative to the run."""
        return path.relative_to(self.root).as_posix()


def read_phone(record: RunRecord, directory: str, udid: str) -> PhoneRecord:
    """Read one phone's documents; what cannot be read counts as missing."""
    paths = record.paths.device(directory)
    return PhoneRecord(
        root=record.paths.root,
        paths=paths,
        device=_optional(paths.device, DeviceDocument),
        attempts=tuple((attempt, _evidence(record, attempt, udid)) for attempt in paths.attempts()),
    )


def _evidence(record: RunRecord, attempt: AttemptPaths, udid: str) -> EvidenceDocument:
    events = read_events(record.paths.events)
    return _optional(attempt.evidence, EvidenceDocument) or evidence_from_events(
        events, udid, int(attempt.root.name)
    )


def _optional(path: Path, kind: type[D]) -> D | None:
    try:
        return read_document(path, kind)
    except RunDirectoryError:
        return None
