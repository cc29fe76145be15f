"""Make everything that is derived from a run: verdicts, JUnit, summaries, the page.

Nothing is taken from memory: a run killed by a power cut gets the same report as one that ended,
and making it twice gives the same bytes. The evidence and its manifest are never written to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.domain.outcome import ExitCode, Outcome, exit_code_of, outcome_of_run
from orchestrator.report.junit import junit_xml
from orchestrator.report.last_green import recall
from orchestrator.report.page import html_page
from orchestrator.report.phones import judge_phones
from orchestrator.report.result import RunResult
from orchestrator.report.rundir import read_run
from orchestrator.report.summary_md import summary_markdown
from orchestrator.runlog.documents import SummaryDocument, SummaryPhone
from orchestrator.runlog.files import replace_file, write_document
from orchestrator.runlog.layout import RunPaths

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.runlog.documents import RunDocument, VerdictDocument

_BY_SIGNAL: Final = {"SIGINT": ExitCode.SIGINT, "SIGTERM": ExitCode.SIGTERM}


def remake(run: Path) -> SummaryDocument:
    """Judge a run again from its directory and replace all that is derived from it.

    Raises:
        RunDirectoryError: Naming what is missing, where `run` is no run directory.
    """
    result = judge_run(run)
    paths = RunPaths(run)
    for phone in result.phones:
        write_document(paths.device(phone.directory).verdict, phone.verdict)
    replace_file(paths.junit, junit_xml(result))
    replace_file(paths.summary_md, summary_markdown(result).encode())
    replace_file(paths.html, html_page(result).encode())
    write_document(paths.summary_json, result.summary)  # last: whoever sees it sees the rest
    return result.summary


def judge_run(run: Path) -> RunResult:
    """Return a run, judged; nothing is written.

    Raises:
        RunDirectoryError: Naming what is missing, where `run` is no run directory.
    """
    record = read_run(run)
    phones = judge_phones(record)
    verdicts = [phone.verdict for phone in phones]
    summary = summarise(record.run, verdicts)
    return RunResult(record.run, record.plan, summary, phones, recall(run))


def summarise(run: RunDocument, verdicts: list[VerdictDocument]) -> SummaryDocument:
    """Return the summary of a run from its verdicts."""
    outcome, exit_code = _outcome(run, [Outcome(verdict.outcome) for verdict in verdicts])
    return SummaryDocument(
        run_id=run.run_id,
        outcome=outcome,
        exit_code=exit_code,
        virtual=run.virtual or any(verdict.virtual for verdict in verdicts),
        phones=[
            SummaryPhone(
                udid=verdict.udid,
                alias=verdict.alias,
                model=verdict.model,
                product_type=verdict.product_type,
                os=verdict.os,
                outcome=verdict.outcome,
                cause=verdict.cause,
                checks=verdict.checks,
                host=verdict.host,
            )
            for verdict in verdicts
        ],
    )


def _outcome(run: RunDocument, outcomes: list[Outcome]) -> tuple[Outcome, ExitCode]:
    if run.ended_s is None:
        return Outcome.ABORTED, ExitCode.INCONCLUSIVE
    if run.interrupted_by is not None:
        code = _BY_SIGNAL.get(run.interrupted_by, ExitCode.INCONCLUSIVE)
        return outcome_of_run([*outcomes, Outcome.ABORTED]), code
    return outcome_of_run(outcomes), exit_code_of(outcomes)
