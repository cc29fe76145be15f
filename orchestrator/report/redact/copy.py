"""`fleet redact`: writes the copy, draws its reports from redacted results, and looks once more.

The copy is to be read, not judged: with other tokens no contract can be recomputed, so its verdicts
are the original's and `fleet report` refuses it. Nothing is written into the original.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import shutil
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import FleetError, UsageError
from orchestrator.report.junit import junit_xml
from orchestrator.report.page import html_page
from orchestrator.report.redact.files import NotRedactableError, redacted_file
from orchestrator.report.redact.pseudonyms import Pseudonyms
from orchestrator.report.redact.values import redacted_result
from orchestrator.report.remake import judge_run
from orchestrator.report.rundir import REDACTED_NAME
from orchestrator.report.summary_md import summary_markdown
from orchestrator.runlog.files import replace_file, write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import evidence_files, write_manifest

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator.report.result import RunResult
    from orchestrator.runlog.documents import AbsentPhone, PlannedPhone, SkippedPhone

_KEY_BYTES: Final = 32
_MIN_PROCESS_CHARACTERS: Final = 4


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A file that stays at home."""

    file: str  # its name in the copy, had it been copied
    reason: str


class RedactionDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`redacted.json`: says what this is, and of which original."""

    schema: int = 1
    original_manifest_sha256: str | None  # None: the run never sealed its evidence
    left_out: list[LeftOut]
    note: str = (
        "A copy with UDIDs, names, processes and tokens replaced. Its verdicts are the original's; "
        "it cannot be judged again."
    )


class LeakError(FleetError):
    """The copy would still have held something private; it was deleted."""


def redact_run(root: Path, target: Path, *, key: bytes | None = None) -> RedactionDocument:
    """Write a redacted copy of a run.

    Args:
        root: The run; nothing in it is changed.
        target: A folder that does not exist yet.
        key: Of the hashes that replace tokens; a fresh one unless a test gives it.

    Raises:
        RunDirectoryError: If `root` is no run directory.
        UsageError: If `target` exists.
        LeakError: If a name survived; then there is no copy.
    """
    if target.exists():
        raise UsageError(f"{target} exists already", remedy="Name a new folder with --out")
    result = judge_run(root)
    pseudonyms = _learnt(result, Pseudonyms(key or secrets.token_bytes(_KEY_BYTES)))
    app_name = result.plan.app.name if result.plan else ""
    private = pseudonyms.pattern_of_originals()
    try:
        document = RedactionDocument(
            original_manifest_sha256=_sealed(root),
            left_out=_copy(root, target, pseudonyms, app_name),
        )
        pseudonyms.learn_processes(_MIN_PROCESS_CHARACTERS)
        _draw(redacted_result(_without_raw_text(result), pseudonyms), target)
        write_document(target / REDACTED_NAME, document)
        write_manifest(target)
        if private is not None:
            _search(target, private)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)  # half a redaction is none
        raise
    return document


def _learnt(result: RunResult, pseudonyms: Pseudonyms) -> Pseudonyms:
    plan = result.plan
    if plan is None:
        return pseudonyms
    phones: list[PlannedPhone | AbsentPhone | SkippedPhone] = [
        *plan.phones,
        *plan.absent,
        *plan.skipped,
    ]
    for number, phone in enumerate(phones, start=1):
        stand_in, udid = f"phone-{number}", pseudonyms.udid(phone.udid)
        directory = getattr(phone, "directory", "")
        pseudonyms.learn(directory, f"{stand_in}-{udid[-8:]}")
        pseudonyms.learn(phone.udid, udid)
        pseudonyms.learn(phone.alias, stand_in)
        pseudonyms.learn(getattr(phone, "name", ""), f"{stand_in} name")
        for tag in getattr(phone, "tags", ()):
            pseudonyms.learn(tag, pseudonyms.name("tag", tag))
    for host in dict.fromkeys(phone.host for phone in plan.phones if phone.host):
        pseudonyms.learn(host, pseudonyms.name("host", host))
    return pseudonyms


def _sealed(root: Path) -> str | None:
    manifest = RunPaths(root).manifest
    return hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.exists() else None


def _copy(root: Path, target: Path, pseudonyms: Pseudonyms, app_name: str) -> list[LeftOut]:
    left_out = []
    for path in evidence_files(root):
        name = pseudonyms.text(path.relative_to(root).as_posix())
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write(copy, redacted_file(path, pseudonyms, app_name))
        except (NotRedactableError, RecursionError) as error:
            copy.unlink(missing_ok=True)
            left_out.append(LeftOut(file=name, reason=str(error) or "nested too deeply"))
    return left_out


def _without_raw_text(result: RunResult) -> RunResult:
    """Leave out what a phone said word for word: no rule can tell what is private in it."""
    phones = tuple(
        dataclasses.replace(
            phone,
            console=None,
            records=tuple(record.without_text() for record in phone.records),
            excerpts=tuple(dataclasses.replace(e, lines=(), frames=()) for e in phone.excerpts),
        )
        for phone in result.phones
    )
    return dataclasses.replace(result, phones=phones)


def _write(path: Path, parts: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(parts)


def _draw(result: RunResult, target: Path) -> None:
    """Write everything derived, from results that hold nothing private."""
    paths = RunPaths(target)
    for phone in result.phones:
        write_document(paths.device(phone.directory).verdict, phone.verdict)
    replace_file(paths.junit, junit_xml(result))
    replace_file(paths.summary_md, summary_markdown(result).encode())
    replace_file(paths.html, html_page(result).encode())
    write_document(paths.summary_json, result.summary)


def _search(target: Path, private: re.Pattern[str]) -> None:
    """Look for every original in every file and name of the copy."""
    for path in target.rglob("*"):
        name = path.relative_to(target).as_posix()
        if private.search(name) or (path.is_file() and _holds(path, private)):
            raise LeakError(f"the copy of {name} would still hold a name or UDID; no copy is left")


def _holds(path: Path, private: re.Pattern[str]) -> bool:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        return any(private.search(line) for line in file)
