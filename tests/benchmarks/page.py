"""The page of the benchmarks: each part's block stands between marks of its own."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "performance.md"


def conditions(command: str, load_before: float, load_after: float) -> str:
    """Return a line that says when, where, beside what and by which command it was measured."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"Measured {today} by `{command}` on {platform.system()} {platform.machine()},"
        f" {os.cpu_count()} cores, Python {platform.python_version()},"
        f" load average {load_before:.1f} before and {load_after:.1f} after."
    )


def with_block(text: str, name: str, block: str) -> str:
    """Return a page with one part's block replaced.

    Raises:
        ValueError: If the page has no marks for it.
    """
    begin, end = f"<!-- bench {name}: begin -->\n", f"<!-- bench {name}: end -->\n"
    start, stop = text.index(begin) + len(begin), text.index(end)
    return f"{text[:start]}\n{block}\n{text[stop:]}"


def write(name: str, block: str) -> None:
    """Replace one part's block in the page."""
    PAGE.write_text(with_block(PAGE.read_text("utf-8"), name, block), "utf-8")
