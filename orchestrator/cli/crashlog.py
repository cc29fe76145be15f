"""`fleet crashlog parse`."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orchestrator.evidence.collection import Copies
    from orchestrator.evidence.listing import Interest, Row
    from orchestrator.evidence.reports import ParsedReport
    from orchestrator.evidence.symbols import Symbolicator

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def crashlog() -> None:
    """Diagnostic reports of iPhones.

    Example: fleet crashlog parse runs/latest
    """


@app.command()
def parse(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    app_name: Annotated[
        str | None, typer.Option("--app", help="Executable of the app asked about.")
    ] = None,
    pid: Annotated[int | None, typer.Option("--pid", help="Its process id.")] = None,
    product: Annotated[
        str | None, typer.Option("--product", help="Ignore reports of another ProductType.")
    ] = None,
    dsym: Annotated[
        list[Path] | None,
        typer.Option("--dsym", help="Name the calls of crashes; needs the extra `symbols`."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one list as JSON.")] = False,
) -> None:
    """Read jetsam, crash and other diagnostic reports, whatever their names and state.

    Folders are walked, of a run directory those of its reports; copies of one incident are listed
    once. Exits 0 whatever the files hold, 2 if a path is missing.
    Example: fleet crashlog parse runs/latest --app FleetHarness
    """
    from orchestrator.evidence.collection import Copies, collected
    from orchestrator.evidence.listing import Interest

    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
    symbolicator = _symbolicator(dsym)
    copies = Copies()
    reports = collected(_without_run_files(paths), copies)
    rows = _rows(reports, Interest(app_name, pid, product), symbolicator)
    if json:
        _print_list(rows)
    else:
        _print_digest(rows, copies)


def _without_run_files(paths: Iterable[Path]) -> list[Path]:
    """Return paths with each run directory replaced by the folders of its phones' reports.

    Everything else in there is ours and no report of a phone.
    """
    looked_at: list[Path] = []
    for path in paths:
        if (path / "run.json").is_file():
            looked_at += sorted(path.glob("devices/*/attempts/*/reports"))
        else:
            looked_at.append(path)
    return looked_at


def _symbolicator(dsym: list[Path] | None) -> Symbolicator | None:
    if not dsym:
        return None
    from orchestrator.evidence.symbols import Symbolicator, UnusableSymbolsError

    try:
        return Symbolicator.opened(dsym)
    except UnusableSymbolsError as error:
        raise UsageError(str(error)) from error


def _rows(
    reports: Iterable[ParsedReport], interest: Interest, symbolicator: Symbolicator | None
) -> Iterator[Row]:
    from orchestrator.evidence.listing import row_of
    from orchestrator.evidence.reports import CrashReport

    for report in reports:
        row = row_of(report, interest)
        if symbolicator and isinstance(report, CrashReport) and report.backtrace:
            row["frames"] = symbolicator.named(report.backtrace)
        yield row


def _print_list(rows: Iterable[Row]) -> None:
    """Print a JSON list row by row; texts of phones are escaped, not printed raw."""
    separator = "[\n"
    for row in rows:
        print(separator + json_format.dumps(row), end="")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _print_digest(rows: Iterable[Row], copies: Copies) -> None:
    from orchestrator.evidence.digest import digest_lines, total_line

    counts: dict[str, int] = {}
    for row in rows:
        for line in digest_lines(row):
            print(line)
        label = "ignored" if row["ignored"] else str(row["kind"])
        counts[label] = counts.get(label, 0) + 1
    print(total_line(counts, copies.count))
