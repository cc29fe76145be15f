"""Builds and signs the harness app for iPhones; equal sources and settings are built once.

Not run on a Mac: tests drive it with executables that answer as Apple's tools are documented to.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import BuildError
from orchestrator.harness.build import only_builder
from orchestrator.harness.package import pack_app
from orchestrator.harness.tool import NOT_THERE, TIMED_OUT, ToolRun, run_tool
from orchestrator.harness.xcode import commands
from orchestrator.harness.xcode.failures import BuildCause, Failure, classify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from orchestrator.harness.tool import Sink

BUILD_LIMIT_S: Final = 1800.0
_QUICK_LIMIT_S: Final = 60.0
_KEPT_RESULTS: Final = 5  # of logs, result bundles and derived data of other commits
_XCODE_REMEDY: Final = (
    "Install Xcode 16 or later from the App Store on a Mac, open it once, and run "
    "`sudo xcode-select -s /Applications/Xcode.app`; or give a signed app with --ipa; "
    "`fleet build --virtual` and `fleet soak --virtual` need no Xcode"
)
# Output of the pipe comes line by line with it instead of in blocks (M).
_ENVIRONMENT: Final = {"NSUnbufferedIO": "YES"}


class XcodeError(BuildError):
    """A build for iPhones failed, of one cause.

    Attributes:
        cause: Typed.
        log: Everything the tool said; None where it said nothing worth keeping.
    """

    def __init__(self, failure: Failure, log: Path | None = None) -> None:
        self.cause, self.log = failure.cause, log
        where = f"; the whole log is {log}" if log else ""
        super().__init__(
            f"no app for iPhones ({failure.cause}): {failure.facts}", remedy=failure.remedy + where
        )


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What is built, and where its remains go."""

    project: Path
    scheme: str
    bundle_id: str
    team_id: str | None
    increased_memory_limit: bool
    key: commands.AscKey | None
    commit: str | None  # names the derived data
    cache: Path
    usable: Callable[[Path], bool] = field(default=lambda _: True)  # whether a kept app still does
    limit_s: float = BUILD_LIMIT_S

    @property
    def sources(self) -> Path:
        """The folder whose files decide whether anything changed: the package's, else the app's."""
        package = self.project.absolute().parent.parent
        return (
            package if (package / "Package.swift").is_file() else package / self.project.parent.name
        )


@dataclass(frozen=True, slots=True)
class BuiltApp:
    """A signed app, packed."""

    ipa: Path
    digest: str  # of sources, settings and Xcode's version
    cached: bool
    log: Path | None  # None: nothing was built


def build_for_iphone(order: BuildOrder, sink: Sink) -> BuiltApp:
    """Build and sign the app, or return the one that equal sources gave before.

    Blocks: call it from a worker thread. Builders exclude each other by a file lock.

    Args:
        order: What to build.
        sink: Gets the tools' output as it comes.

    Raises:
        XcodeError: Naming one cause, its remedy and the log.
        BuildError: If another build holds the lock for too long.
    """
    deadline = Deadline.after(order.limit_s)
    version = _xcode_version(deadline)
    if not order.project.exists():
        facts = f"{order.project} is not there"
        raise XcodeError(Failure(BuildCause.PROJECT_MISSING, facts, "Check harness.project"))
    digest = _digest(order, version)
    order.cache.mkdir(parents=True, exist_ok=True)
    with only_builder(order.cache / "lock", deadline):
        ipa = order.cache / "apps" / digest / "app.ipa"
        if ipa.is_file() and order.usable(ipa):
            return BuiltApp(ipa, digest, cached=True, log=None)
        log = _built(order, digest, ipa, sink, deadline)
        _prune(order.cache / "apps", keep=1)
        return BuiltApp(ipa, digest, cached=False, log=log)


def _xcode_version(deadline: Deadline) -> str:
    done = run_tool(commands.xcode_version(), deadline=deadline.within(_QUICK_LIMIT_S))
    if done.exit_code == NOT_THERE:
        facts = "Xcode is needed to build the harness app for an iPhone"
        raise XcodeError(Failure(BuildCause.NO_XCODE, facts, _XCODE_REMEDY))
    if done.exit_code != 0:
        raise XcodeError(classify(done.output, done.exit_code))
    return done.output


def _built(order: BuildOrder, digest: str, ipa: Path, sink: Sink, deadline: Deadline) -> Path:
    # A bundle of this name must not be there: builds of one second differ by the process.
    name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}-{digest}"
    results, log = order.cache / "results", order.cache / "results" / f"{name}.log"
    derived = order.cache / "derived" / _folder_name(order.commit)
    for folder in (results, derived):
        folder.mkdir(parents=True, exist_ok=True)
    build = commands.XcodeBuild(
        project=order.project.absolute(),
        scheme=order.scheme,
        bundle_id=order.bundle_id,
        team_id=order.team_id,
        increased_memory_limit=order.increased_memory_limit,
        derived_data=derived,
        result_bundle=results / f"{name}.xcresult",
        key=order.key,
    )
    words = commands.xcodebuild(build)
    done = run_tool(words, deadline=deadline, log=log, sink=sink, environment=_ENVIRONMENT)
    if done.exit_code != 0:
        raise XcodeError(_failure(done, build.result_bundle, order.limit_s), log)
    pack_app(_product(order, derived, log), ipa)
    _prune(results, keep=2 * _KEPT_RESULTS)
    _prune(order.cache / "derived", keep=2)
    return log


def _failure(done: ToolRun, results: Path, limit_s: float) -> Failure:
    if done.exit_code == TIMED_OUT:
        facts = f"xcodebuild was ended after {limit_s:g} s"
        return Failure(BuildCause.TIMED_OUT, facts, "Look where the log stops; build again")
    said = done.output
    if results.exists():  # its messages are whole where the log's are cut or reworded
        asked = run_tool(commands.build_results(results), deadline=Deadline.after(_QUICK_LIMIT_S))
        said = "\n".join([said, *_messages(asked.output if asked.exit_code == 0 else "")])
    return classify(said, done.exit_code)


def _messages(text: str) -> Iterator[str]:
    """Yield the error messages of `xcresulttool get build-results`; which keys it has is L."""
    try:
        values = json.loads(text)
    except ValueError:
        return
    errors = values.get("errors") if isinstance(values, dict) else None
    for entry in errors if isinstance(errors, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("message"), str):
            yield f"error: {entry['message']}"


def _product(order: BuildOrder, derived: Path, log: Path) -> Path:
    folder = commands.products_folder(derived)
    apps = sorted(folder.glob("*.app"))
    if len(apps) != 1:
        named = [app for app in apps if app.stem == order.scheme]
        apps = named or apps
    if len(apps) != 1:
        facts = f"{len(apps)} apps are in {folder}"
        raise XcodeError(
            Failure(BuildCause.BAD_PRODUCT, facts, "Name the scheme after the app"), log
        )
    words = commands.verify_signature(apps[0])
    done = run_tool(words, deadline=Deadline.after(_QUICK_LIMIT_S))
    if done.exit_code != 0:
        facts = f"codesign does not verify it: {done.first_line}"
        remedy = "Delete the derived data and build again"
        raise XcodeError(Failure(BuildCause.BAD_PRODUCT, facts, remedy), log)
    return apps[0]


def _digest(order: BuildOrder, xcode: str) -> str:
    """Return 16 hex digits over sources, settings and Xcode's version."""
    settings = [xcode, order.scheme, order.bundle_id, order.team_id, order.increased_memory_limit]
    digest = hashlib.sha256(repr(settings).encode())
    root = order.sources
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if any(part.startswith(".") or part == "xcuserdata" for part in name.parts):
            continue
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"{name.as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _folder_name(commit: str | None) -> str:
    """Changed sources share the folder of their commit: the next build is incremental."""
    return (commit or "no-commit").rstrip("+")[:12]


def _prune(folder: Path, keep: int) -> None:
    entries = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for entry in entries[keep:]:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
