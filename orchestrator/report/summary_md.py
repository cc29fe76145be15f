"""`summary.md`: the short table that a CI job shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.report.wording import markdown, quantity

if TYPE_CHECKING:
    from orchestrator.report.result import PhoneResult, RunResult
    from orchestrator.runlog.documents import CheckDocument


def summary_markdown(result: RunResult) -> str:
    """Return the run as GitHub-flavoured Markdown."""
    lines = [f"## {markdown(result.headline)}", ""]
    lines += [f"> **{mark}**" for mark in marks_of(result)]
    lines += ["", *_phones(result), ""]
    for phone in result.phones:
        lines += _failing(phone)
    lines += _skipped(result)
    return "\n".join(lines).rstrip() + "\n"


def marks_of(result: RunResult) -> list[str]:
    """Return what a reader must know first: this was no iPhone, this was not the app."""
    marks = []
    if result.virtual:
        marks.append("VIRTUAL: no iPhone was involved")
    if result.stand_in:
        marks.append("STAND-IN APP: not the Swift app")
    return marks


def _phones(result: RunResult) -> list[str]:
    if not result.phones:
        return ["No phone was soaked."]
    rows = [
        "| Phone | Model | iOS | Outcome | Cause | Tokens | Trims | Evictions |",
        "|---|---|---|---|---|---:|---:|---:|",
    ]
    for verdict in (phone.verdict for phone in result.phones):
        texts = (verdict.alias, verdict.model, verdict.os, verdict.outcome, verdict.cause)
        counts = (verdict.tokens_total, verdict.trims, verdict.evictions)
        rows.append("| " + " | ".join([*map(markdown, texts), *map(str, counts)]) + " |")
    return rows


def _failing(phone: PhoneResult) -> list[str]:
    verdict = phone.verdict
    if verdict.outcome == "PASS":
        return []
    lines = [f"### {markdown(verdict.alias)}: {markdown(verdict.explanation)}", ""]
    if phone.failing:
        lines += ["| Check | Result | Value | Limit | Record | Why |", "|---|---|---|---|---|---|"]
        lines += [_check(check) for check in phone.failing]
        lines.append("")
    return lines


def _check(check: CheckDocument) -> str:
    record = "—" if check.seq is None else f"{check.launch or '?'} #{check.seq}"
    cells = (
        check.id,
        check.result,
        quantity(check.value, check.unit),
        quantity(check.limit, check.unit),
        record,
        check.reason or "—",
    )
    return "| " + " | ".join(map(markdown, cells)) + " |"


def _skipped(result: RunResult) -> list[str]:
    if result.plan is None or not result.plan.skipped:
        return []
    lines = ["### Not soaked", ""]
    lines += [
        f"* {markdown(phone.alias)} ({markdown(phone.model)}, iOS {markdown(phone.os)}): "
        f"{markdown(phone.reason)}"
        for phone in result.plan.skipped
    ]
    return lines
