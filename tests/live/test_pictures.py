"""The README's pictures: there, small, and loading nothing from elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.live.pictures import MOST_BYTES, PICTURES, live_svg
from tests.report.runs import write_run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_pictures_are_there_and_small() -> None:
    sizes = {path.name: path.stat().st_size for path in PICTURES.iterdir()}
    assert set(sizes) == {"live.svg", "report.png"}
    assert max(sizes.values()) < MOST_BYTES


def test_the_live_picture_is_the_table_and_loads_nothing(tmp_path: Path) -> None:
    svg = live_svg(write_run(tmp_path / "run").root)
    assert "desk-15pro" in svg
    assert (
        re.search(r"url\((?!#)|@font-face|@import|href", (PICTURES / "live.svg").read_text())
        is None
    )
