"""`fleet model lint`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchestrator.mlpackage.lint.rule import Finding

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def lint(
    packages: Annotated[
        list[Path], typer.Argument(help="The packages of one model, or a folder that holds them.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    bits: Annotated[
        int | None, typer.Option(min=1, max=16, help="Bits that the inner layers must have.")
    ] = None,
    host_state: Annotated[
        bool, typer.Option("--host-state", help="The host writes the states, not the graph.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option(help="A fleet.yaml whose model.names the packages must have.")
    ] = None,
) -> None:
    """Say what is known to break such packages on a phone.

    Every finding names its rule; docs/lint holds a page per rule. Exits 1 on an error, 2 where a
    package cannot be read. Example: fleet model lint model.mlpackage --bits 4
    """
    from orchestrator.mlpackage.lint.rule import Expectations, Level
    from orchestrator.mlpackage.lint.run import lint as find
    from orchestrator.mlpackage.package import find_packages, read_package

    expected = Expectations(bits, host_state, _names(config))
    read = [read_package(path) for given in packages for path in find_packages(given)]
    findings = find(read, expected)
    if json:
        _print_json(findings)
    else:
        _print_lines(findings)
    if any(finding.level is Level.ERROR for finding in findings):
        raise typer.Exit(1)


def _names(config: Path | None) -> dict[str, tuple[str, ...]]:
    if config is None:
        return {}
    from orchestrator.config.load import load_config

    return load_config(config).model.names.given()


def _print_json(findings: list[Finding]) -> None:
    import dataclasses
    import json

    documents = [dataclasses.asdict(finding) for finding in findings]
    print(json.dumps({"schema": 1, "findings": documents}, indent=2))


def _print_lines(findings: list[Finding]) -> None:
    from orchestrator.cli.main import one_line
    from orchestrator.mlpackage.lint.rule import Level

    for finding in findings:
        print(one_line(f"{finding.level} {finding.rule} {finding.package}: {finding.message}"))
        print(f"  {finding.remedy}; see docs/lint/{finding.rule}.md")
    counts = Counter(finding.level for finding in findings)
    listed = (f"{counts[level]} {level}" for level in Level)
    print(", ".join(listed) if findings else "nothing found")
