"""Writes a joined run: its events, its end and its manifest, from what lies in its directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from orchestrator.cluster.join import Part, joined_events
from orchestrator.cluster.mirror import HOSTS, joined_manifest
from orchestrator.domain.errors import RunDirectoryError
from orchestrator.runlog.documents import PlanDocument, RunDocument
from orchestrator.runlog.events import read_events
from orchestrator.runlog.files import read_document, replace_file, write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import write_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.cluster.clock import ClockOffset


def read_part(folder: Path, host: str, clock: ClockOffset | None = None) -> Part:
    """Read one host's own documents.

    Raises:
        RunDirectoryError: If they cannot be read.
    """
    paths = RunPaths(folder)
    return Part(
        host=host,
        run=read_document(paths.run, RunDocument),
        plan=read_document(paths.plan, PlanDocument),
        events=tuple(read_events(paths.events)),
        clock=clock,
    )


def mirrored_part(root: Path, host: str, clock: ClockOffset | None) -> Part | None:
    """Read the part of a host that was mirrored; None where it never began."""
    try:
        return read_part(root / HOSTS / host, host, clock)
    except RunDirectoryError:
        return None


def write_events(root: Path, parts: Sequence[Part]) -> None:
    """Replace the events of a joined run by all events on one clock; may be done again."""
    paths = RunPaths(root)
    events = joined_events(read_events(paths.events), parts)
    replace_file(paths.events, b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def seal(root: Path, document: RunDocument, hosts: Sequence[str], *, whole: bool) -> None:
    """Write a joined run's document, and where it is whole the manifest of its evidence."""
    write_document(RunPaths(root).run, document)
    if whole:
        write_manifest(root, joined_manifest(root, hosts))
