"""The reference pages that are made from the code. `make docs` writes them again.

Each page is a hand-written head, the mark, and what the code gives; a test holds the two equal.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import msgspec

from orchestrator.cli.schema import schema_text
from orchestrator.config.schema import REQUIRED, keys
from orchestrator.report.pages.causes import CAUSES
from orchestrator.report.pages.exit_codes import EXIT_CODES
from orchestrator.report.pages.library import check_page
from orchestrator.report.pages.outcomes import OUTCOMES
from orchestrator.report.pages.page import as_markdown
from orchestrator.report.pages.scenarios import scenario_pages
from orchestrator.runlog.telemetry import AnyRecord, Record
from orchestrator.verdict.catalog import CATALOG
from tests.docs.commands import help_of, root, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from orchestrator.report.pages.page import Page

REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference"
MARK: Final = "<!-- below: made from the code by `make docs` -->\n"  # above it: written by hand


SCHEMA: Final = REFERENCE / "fleet.schema.json"
_MOST_WORDS: Final = 60  # of a default or a list of values in a cell


def config_page() -> str:
    """Return the keys of `fleet.yaml` as one table per block."""
    lines: list[str] = []
    block = ""
    for key in keys():
        first = key.path.partition(".")[0].removesuffix("[]")
        if first != block:
            block = first
            lines += [
                f"## `{block}`",
                "",
                "| key | value | default | what it is |",
                "|---|---|---|---|",
            ]
        lines.append(f"| `{key.path}` | {_cell(key.kind)} | {_default(key.default)} | {key.text} |")
    return _blocks_apart(lines)


def records_page() -> str:
    """Return the kinds of records with their fields, as the reader of a run knows them."""
    lines: list[str] = []
    shared = {field.name for field in msgspec.structs.fields(Record)}
    for kind in get_args(AnyRecord):
        first = (kind.__doc__ or "").partition("\n")[0]
        lines += [
            f"## `{kind.__struct_config__.tag}`",
            "",
            first,
            "",
            "| field | type | |",
            "|---|---|---|",
        ]
        lines += [
            f"| `{field.encode_name}` | {_type_name(field.type)} | {_presence(field)} |"
            for field in msgspec.structs.fields(kind)
            if field.name not in shared
        ]
    return _blocks_apart(lines)


def _presence(field: msgspec.structs.FieldInfo) -> str:
    return "" if field.required else "may be missing"


def _type_name(kind: object) -> str:
    name = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return re.sub(r"[a-z_]+\.(?:[a-z_]+\.)*", "", name).replace("|", "or")


def cli_page() -> str:
    """Return the help of every command."""
    sections = (
        f"## `{path}`\n\n```text\n{help_of(path, command).rstrip()}\n```\n"
        for path, command in walk(root())
    )
    return "\n".join(sections)


def _blocks_apart(lines: list[str]) -> str:
    return "\n".join(lines).replace("\n## ", "\n\n## ") + "\n"


def _default(value: object) -> str:
    if value is REQUIRED:
        return "required"
    return f"`{_cell(json.dumps(value))}`"


def _cell(text: str) -> str:
    short = text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1] + "…"
    return short.replace("|", "\\|")


def _sections(pages: Iterable[Page]) -> str:
    return "\n".join(as_markdown(page) for page in pages)


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "checks.md": lambda: _sections(check_page(info) for info in CATALOG.values()),
    "causes.md": lambda: _sections(CAUSES.values()),
    "outcomes.md": lambda: _sections(OUTCOMES),
    "exit-codes.md": lambda: _sections(EXIT_CODES.values()),
    "scenarios.md": lambda: _sections(scenario_pages()),
    "config.md": config_page,
    "records.md": records_page,
    "cli.md": cli_page,
}


def current(name: str) -> str:
    """Return a page as it should be."""
    head, mark, _ = (REFERENCE / name).read_text().partition(MARK)
    assert mark, f"docs/reference/{name} has no mark"
    return head + mark + PAGES[name]()


if __name__ == "__main__":
    for page_name in PAGES:
        (REFERENCE / page_name).write_text(current(page_name))
    SCHEMA.write_text(schema_text())
