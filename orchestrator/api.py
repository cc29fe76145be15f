"""The Python API: run a soak, load a run, iterate its records, evaluate its checks.

Names are taken from `orchestrator` itself, which imports this module when one is first used:
`from orchestrator import load_run, run_soak`. docs/reference/python-api.md shows it in a notebook.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import (
    BuildError,
    FleetError,
    HeldError,
    NoPhoneError,
    UsageError,
)
from orchestrator.domain.outcome import ExitCode, Outcome
from orchestrator.report.remake import judge_run
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.lines import read_lines
from orchestrator.runlog.telemetry import MalformedRecordError, decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.report.result import RunResult
    from orchestrator.runlog.documents import (
        CheckDocument,
        PlanDocument,
        SummaryDocument,
        VerdictDocument,
    )
    from orchestrator.runlog.telemetry import AnyRecord

# Before a start nothing was run: there is no run to return.
_REFUSALS: Final[dict[int, type[FleetError]]] = {
    ExitCode.USAGE: UsageError,
    ExitCode.NO_PHONE: NoPhoneError,
    ExitCode.BUILD: BuildError,
    ExitCode.HELD: HeldError,
}
_RUN_NOTE: Final = "run "  # the line on stderr that names the run: `run ID: 4 phones, swift app`


@dataclass(frozen=True, slots=True)
class PhoneRun:
    """One phone's part of a run.

    Attributes:
        verdict: Outcome, cause, explanation and all check results, evaluated when loaded.
        telemetry: The merged records; may be missing where the phone never ran.
    """

    verdict: VerdictDocument
    telemetry: Path

    @property
    def alias(self) -> str:
        """What the phone is called; text from outside."""
        return self.verdict.alias

    @property
    def outcome(self) -> Outcome:
        """PASS, FAIL (the product), ERROR (the lab) or ABORTED."""
        return Outcome(self.verdict.outcome)

    @property
    def cause(self) -> str:
        """Why its soak ended."""
        return self.verdict.cause

    @property
    def checks(self) -> dict[str, CheckDocument]:
        """Results by check id: `result`, `value`, `unit`, `limit`, `reason`, `launch`, `seq`."""
        return {check.id: check for check in self.verdict.checks}

    def records(self) -> Iterator[AnyRecord]:
        """Yield the app's records in order, typed; lines that are none are left out.

        Bytes are phone bytes, times nanoseconds since the launch (`docs/protocol.md`, 3). The
        check `telemetry.complete` is what judges gaps and broken lines.
        """
        if not self.telemetry.exists():
            return
        for line in read_lines(self.telemetry):
            try:
                yield decode_record(line.content)
            except MalformedRecordError:
                continue


@dataclass(frozen=True, slots=True)
class Run:
    """A run directory, judged from its evidence; nothing is written."""

    path: Path
    result: RunResult

    @property
    def summary(self) -> SummaryDocument:
        """As `summary.json`, evaluated when loaded."""
        return self.result.summary

    @property
    def plan(self) -> PlanDocument | None:
        """As `plan.json`; None where the run was killed before it had one."""
        return self.result.plan

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of its phones."""
        return Outcome(self.summary.outcome)

    @property
    def exit_code(self) -> int:
        """What `fleet soak` exits with for it."""
        return int(self.summary.exit_code)

    @property
    def phones(self) -> list[PhoneRun]:
        """Its phones, absent ones included."""
        paths = RunPaths(self.path)
        return [
            PhoneRun(phone.verdict, paths.device(phone.directory).telemetry)
            for phone in self.result.phones
        ]


def load_run(path: str | Path) -> Run:
    """Load a run directory and evaluate its checks; works on one that was killed at any instant.

    Args:
        path: A run directory, for example `runs/latest`.

    Raises:
        RunDirectoryError: Naming what is missing, where it is none.
    """
    root = Path(path).resolve()
    return Run(root, judge_run(root))


def run_soak(
    *,
    devices: str = "all",
    virtual: bool = False,
    scenario: str | None = None,
    duration: str | None = None,
    config: str | Path | None = None,
    settings: Sequence[str] = (),
    output: str | Path = "runs",
    seed: int = 1,
) -> Run:
    """Run a soak and return it when its report is written; blocks as long as that takes.

    It runs in a process of its own, as `fleet soak` does, so that it works in a notebook, whose
    event loop and signals stay its own. Progress goes to this process's stderr.

    Args:
        devices: `all`, names, or an expression.
        virtual: Start virtual phones for this run and soak those.
        scenario: Its name; None takes that of the configuration.
        duration: Inference time per phone, with its unit: `60s`, `30m`, `8h`.
        config: None takes `fleet.yaml` where there is one.
        settings: `key=value` overrides of the configuration.
        output: Where run directories go.
        seed: Of prompts and nonces.

    Raises:
        FleetError: Where no run began: UsageError, NoPhoneError, BuildError, HeldError.
    """
    command = [sys.executable, "-m", "orchestrator.cli.main", "soak", "--devices", devices]
    command += ["--output", str(output), "--seed", str(seed)]
    command += ["--virtual"] if virtual else []
    for option, value in (("--scenario", scenario), ("--duration", duration), ("--config", config)):
        command += [] if value is None else [option, str(value)]
    for setting in settings:
        command += ["--set", setting]
    run_id, last = None, ""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        for line in process.stderr or ():
            sys.stderr.write(line)
            last = line.strip() or last
            if run_id is None and line.startswith(_RUN_NOTE):
                run_id = line.removeprefix(_RUN_NOTE).partition(":")[0]
    if run_id is None:
        raise _REFUSALS.get(process.returncode, FleetError)(last or "the soak did not start")
    return load_run(Path(output) / run_id)
