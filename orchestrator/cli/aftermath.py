"""What follows a run whose report is written: history, regression gate, notifications.

The run directory is whole by now, and nothing here can take that back: whatever goes wrong is a
remark on stderr. Only the regression gate, where one is configured, changes the exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from orchestrator.cli.printing import note
from orchestrator.config.fields import from_environment
from orchestrator.domain.errors import FleetError
from orchestrator.domain.outcome import ExitCode, Outcome
from orchestrator.history.gate import GateResult, rule
from orchestrator.history.reading import read_entry
from orchestrator.history.store import DATABASE_NAME, History
from orchestrator.history.wording import comparison_lines, verdict_line
from orchestrator.report.webhook import Webhook, deliver, run_ended_body

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.config.model import FleetConfig, Notification, RegressionBlock
    from orchestrator.history.entry import RunEntry
    from orchestrator.runlog.documents import SummaryDocument


def after_run(run: Path, summary: SummaryDocument, config: FleetConfig) -> ExitCode:
    """Record a run, hold it against the baseline, tell who wants to know.

    Args:
        run: The run directory, report written.
        summary: Of that report.
        config: What the run was made with.

    Returns:
        The exit code of the whole command.
    """
    exit_code = ExitCode(summary.exit_code)
    history = History(run.parent / DATABASE_NAME)
    entry = _recorded(run, history)
    if entry is not None and summary.outcome != Outcome.ABORTED:
        exit_code = _gated(config.regression, history, entry, exit_code)
    told = structs.replace(summary, exit_code=exit_code)
    for notification in config.notify:
        _notify(notification, told)
    return exit_code


def _recorded(run: Path, history: History) -> RunEntry | None:
    try:
        entry = read_entry(run)
        history.record(entry)
    except FleetError as error:
        note(f"note: the run is not in the history: {error}")
        return None
    return entry


def _gated(
    block: RegressionBlock, history: History, entry: RunEntry, exit_code: ExitCode
) -> ExitCode:
    """Return the exit code after the gate; a worse one of the run itself stands."""
    try:
        ruling = rule(block, history, entry)
    except FleetError as error:
        note(f"regression gate: {error}")
        return _inconclusive(block, exit_code)
    if ruling is None:
        return exit_code
    for line in comparison_lines(ruling.comparison):
        note(line)
    note(f"regression gate against {ruling.baseline}: {verdict_line(ruling.comparison)}")
    if ruling.result is GateResult.REGRESSED:
        return ExitCode.PRODUCT_FAILED
    return exit_code if ruling.result is GateResult.HELD else _inconclusive(block, exit_code)


def _inconclusive(block: RegressionBlock, exit_code: ExitCode) -> ExitCode:
    if block.inconclusive == "fail" and exit_code is ExitCode.OK:
        return ExitCode.INCONCLUSIVE
    return exit_code


def _notify(notification: Notification, summary: SummaryDocument) -> None:
    url = from_environment(notification.webhook)
    secret = from_environment(notification.secret)
    # Unsigned where a signature was promised would be worse than nothing.
    if url is None or (notification.secret is not None and secret is None):
        missing = notification.webhook if url is None else notification.secret
        note(f"note: a webhook is not told: {missing} is not set in the environment")
        return
    delivery = deliver(Webhook(url, secret), run_ended_body(summary), summary.run_id)
    if delivery.problem is not None:
        note(f"note: {delivery.host} was not told: {delivery.problem}")
