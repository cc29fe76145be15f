"""Diagnostic reports as a fuzz target: parsed, listed, classified and described."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orchestrator.evidence.classify import classify
from orchestrator.evidence.digest import digest_lines
from orchestrator.evidence.listing import Interest, row_of
from orchestrator.evidence.parse import parse_reports
from tests.evidence.factory import APP, FIXTURES, UUID, Window, crash, jetsam, process, report
from tests.fuzz.driver import Target, mutated

if TYPE_CHECKING:
    import random

INTEREST = Interest(APP, 501, "iPhone15,3")

SAMPLES = [
    *(path.read_bytes() for path in sorted(FIXTURES.rglob("*.ips*")) if path.is_file()),
    crash(asi={"libswiftCore.dylib": ["Fatal error"]}, threads=[{"frames": [{"imageIndex": 0}]}]),
    jetsam(process(killDelta=1), process("assetsd", pid=88), largestProcess=APP),
    report("385", {"exception": {"subtype": "MEMORY"}, "termination": {"code": 9}}, name=APP),
    report("151", {"string": "panic(cpu 0)"}),
    b'{"bug_type":"109","name":"SoakHarness"}\nProcess: SoakHarness [501]\nRole: Foreground\n',
    b'{"bug_type":"145","name":"SoakHarness"}\nEvent: disk writes\nAction taken: none\n',
    b"Incident Identifier: I-1\nProcess: SoakHarness [501]\nException Type: EXC_CRASH (SIGKILL)\n",
]


def make(random_: random.Random) -> bytes:
    """Return random bytes, a mutated report, or several joined ones, mutated."""
    if random_.random() < 0.05:
        return random_.randbytes(random_.randint(0, 256))
    parts = [random_.choice(SAMPLES) for _ in range(random_.choice((1, 1, 1, 2, 3)))]
    return mutated(random_.choice((b"", b"\n", b"\n\n")).join(parts), random_)


def eat(content: bytes) -> None:
    """Do with a report everything that is ever done with one."""
    for parsed in parse_reports(content, "fuzz.ips"):
        row = row_of(parsed, INTEREST)
        json.dumps(row)
        for line in digest_lines(row):
            if not line.isprintable():
                raise ValueError(f"the digest is not printable: {line!r}")
        classify(
            parsed,
            app_name=APP,
            lc_uuid=UUID,
            launches=[Window()],
            clock_offset_s=0.0,
            clock_offset_end_s=3.0,
            tolerance_s=60.0,
        )


TARGET = Target(make, eat)
