"""Makes the README's pictures from a real run on virtual phones: `make pictures`.

`live.svg` is the table of `fleet soak`, at a moment of that run, as rich exports it; `report.png`
is the first screen of its report in Chromium. RUN takes a run that is there instead.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from orchestrator.live.follower import RunFollower
from orchestrator.live.table import Terminal, run_lines
from orchestrator.runlog.layout import RunPaths
from tests.end_to_end.fleet_process import FLEET, environment
from tests.live.replay import Replay
from tests.report.browser import started_browser

PICTURES: Final = Path(__file__).parents[2] / "docs" / "pictures"
MOST_BYTES: Final = 200_000
TERMINAL: Final = Terminal(width=112, height=16)
STYLES: Final = {
    "plain": "",
    "faint": "dim",
    "head": "bold",
    "good": "green",
    "note": "yellow",
    "bad": "bold red",
}
# Pictures load nothing from elsewhere: the viewer's own monospaced font does.
FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", flags=re.DOTALL)


def live_svg(run: Path, share: float = 0.7) -> str:
    """Return the table at a share of a recorded run's length."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "run"
        replay = Replay.of([run], target, phones=None, epoch_s=0.0)
        at_s = share * replay.length_s
        replay.up_to(at_s)
        lines = run_lines(RunFollower(RunPaths(target)).look(at_s), TERMINAL)
    console = Console(
        record=True, width=TERMINAL.width, file=io.StringIO(), color_system="standard"
    )
    for line in lines:
        spans = [(span.text, STYLES[span.role]) for span in line]
        console.print(Text.assemble(*spans), no_wrap=True)
    return FONTS.sub("", console.export_svg(title="fleet soak", unique_id="live"))


def report_png(run: Path) -> bytes:
    """Return the first screen of a run's report."""
    with started_browser() as browser:
        page = browser.new_page(viewport={"width": 1180, "height": 1240}, color_scheme="light")
        page.goto(RunPaths(run).html.as_uri())
        return page.screenshot()


def soaked(folder: Path) -> Path:
    """Soak virtual phones as `make soak` does, and return the run."""
    output = folder / "runs"
    command = [str(FLEET), "soak", "--virtual", "--output", str(output)]
    subprocess.run(command, env=environment(folder), check=True)
    return (output / "latest").resolve()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(sys.argv[1]).resolve() if sys.argv[1:] else soaked(Path(folder))
        PICTURES.mkdir(exist_ok=True)
        png = report_png(run)
        assert len(png) < MOST_BYTES, f"{len(png)} bytes are too many for a repository"
        (PICTURES / "report.png").write_bytes(png)
        (PICTURES / "live.svg").write_text(live_svg(run))


if __name__ == "__main__":
    main()
