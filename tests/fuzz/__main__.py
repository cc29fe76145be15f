"""`python -m tests.fuzz --target ips --n 5000 --seed 1`; `--target all` runs every target."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.driver import fuzz
from tests.fuzz.targets import TARGETS


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--target", default="all", choices=["all", *TARGETS])
    parser.add_argument("--n", type=int, default=5000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    names = list(TARGETS) if options.target == "all" else [options.target]
    return max(_run(name, options.n, options.seed) for name in names)


def _run(name: str, n: int, seed: int) -> int:
    began_s = time.perf_counter()
    found = fuzz(TARGETS[name], n, seed)
    print(
        f"target {name}  inputs {found.inputs}  seed {seed}  crashes {found.crashes}"
        f"  hangs {found.hangs}  growth {found.growth_mib:.1f} MB"
        f"  slowest {found.slowest_s * 1000:.0f} ms  took {time.perf_counter() - began_s:.1f} s"
    )
    for line in found.shown:
        print(f"  {line}")
    return 0 if found.clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
