"""`make conformance`: an independent client's device tests against one virtual phone."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.conformance.out_of_scope import NEEDS
from tests.conformance.suite import client_version, fetch
from tests.conformance.verdict import (
    complaints,
    node_of,
    read_results,
    table,
    with_second_attempt,
)
from tests.virtual.child import child_farm

PHONE = "iPhone 16=18.6"


def main() -> int:
    """Run the suite, print its table, and return 0 if it was passed well enough."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--phone", default=PHONE, metavar="MODEL=IOS")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        home, junit = folder / "home", folder / "junit.xml"
        home.mkdir()
        (folder / "client").mkdir()
        suite = fetch(folder / "client")
        with child_farm("--phone", parsed.phone) as (_, farm):
            suite.run(farm["usbmux"], home, junit)
            results = read_results(junit.read_text())
            again = [node_of(name) for name in results.failed if name not in NEEDS]
            if again:  # the client's own tests have races on a busy machine; that is said below
                suite.run(farm["usbmux"], home, junit, again)
                results = with_second_attempt(results, read_results(junit.read_text()))
    for node in again:
        print(f"second attempt: {node}")
    print(f"\npymobiledevice3 {client_version()}, virtual {parsed.phone}:", end=" ")
    print(f"{results.passed} passed, {len(results.failed)} failed, {len(results.skipped)} skipped")
    print(table(results, NEEDS))
    found = complaints(results, NEEDS)
    for complaint in found:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
