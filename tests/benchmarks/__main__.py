"""`python -m tests.benchmarks`: what everything costs, beside peers where there are any.

Every raw sample goes into one JSON file below runs/bench, the table into docs/performance.md,
part by part, with date, machine, load and command. It is no test: it ends with 0 when it ran,
whatever the figures are, and with 1 if a part could not be measured at all.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.benchmarks import page
from tests.benchmarks.samples import HEADER, Sample, growth, markdown
from tests.benchmarks.scale import QUICK, Scale

if TYPE_CHECKING:
    from types import ModuleType

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "runs" / "bench"
PARTS: Final = (
    *("startup", "discovery", "evidence", "pull", "soak", "push", "long"),
    *("keepers", "farm"),
)
# Take long and need a machine of their own: named with --only.
SPECIAL: Final = ("hundred",)


def part(name: str) -> ModuleType:
    """Return the module of a part."""
    return importlib.import_module(f"tests.benchmarks.part_{name}")


def lines_of(module: ModuleType, samples: list[Sample]) -> str:
    """Return a part's table and its curves."""
    table = markdown(HEADER, [row.cells for row in module.rows(samples)])
    curves = [
        f"* {measure}, {label}: {growth(samples, measure, key)}\n"
        for measure, key, label in module.GROWTH
    ]
    return "\n".join([table, "".join(curves)]) if curves else table


def measured(names: list[str], scale: Scale) -> tuple[dict[str, list[Sample]], dict[str, str]]:
    """Return the samples of each part, and of those that did not run why."""
    samples: dict[str, list[Sample]] = {}
    failed: dict[str, str] = {}
    for name in names:
        sys.stderr.write(f"{name} ...\n")
        try:
            samples[name] = part(name).measure(scale)
        except Exception as error:  # noqa: BLE001 - the other parts are still measured
            failed[name] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
    return samples, failed


def main(arguments: list[str] | None = None) -> int:
    """Measure, keep, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=(*PARTS, *SPECIAL), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="see that it runs; writes no page")
    parser.add_argument("--phones", metavar="N,N", help="of the soak part: 1,10,50,100")
    parser.add_argument("--hours", metavar="H,H", help="of the long part: 2,6,12")
    parser.add_argument("--output", type=Path, default=FOLDER, help="where the JSON goes")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md alone")
    parsed = parser.parse_args(arguments)
    scale = QUICK if parsed.quick else Scale()
    if parsed.phones:
        counts = tuple(int(count) for count in parsed.phones.split(","))
        scale = dataclasses.replace(scale, soaked_phones=counts)
    if parsed.hours:
        hours = tuple(float(hour) for hour in parsed.hours.split(","))
        scale = dataclasses.replace(scale, hours=hours)
    words = [*(f"--only {name}" for name in parsed.only or ())]
    words += [f"--phones {parsed.phones}"] if parsed.phones else []
    words += [f"--hours {parsed.hours}"] if parsed.hours else []
    command = " ".join(["python -m tests.benchmarks", *words])
    before = os.getloadavg()[0]
    samples, failed = measured(parsed.only or list(PARTS), scale)
    about = page.conditions(command, before, os.getloadavg()[0])
    parsed.output.mkdir(parents=True, exist_ok=True)
    kept = parsed.output / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json"
    raw = {name: [dataclasses.asdict(one) for one in taken] for name, taken in samples.items()}
    kept.write_text(json.dumps({"about": about, "failed": failed, "samples": raw}, indent=1))
    for name, taken in samples.items():
        lines = lines_of(part(name), taken)
        sys.stdout.write(f"\n{name}\n\n{lines}")
        if not (parsed.quick or parsed.no_page):
            page.write(name, f"{about}\n\n{lines}")
    for name, why in failed.items():
        sys.stdout.write(f"\n{name}: not measured: {why}\n")
    sys.stdout.write(f"\n{about}\nraw samples: {kept}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
