from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.fleet_process import QUICK, FinishedRun, run_fleet

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFECTS = ("never-trim", "no-evict", "naive-8gib", "trim-stale-state", "jetsam")
SIDE_BY_SIDE = 3  # two cores: more only slow each other


@pytest.fixture(scope="session")
def quick_runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, FinishedRun]:
    """A clean run and one for each defect, by name, on four virtual phones each."""
    # The first builds the app, if it must; the others then find it built.
    folders = {name: tmp_path_factory.mktemp(name) for name in ("clean", *DEFECTS)}
    soak = ("soak", "--devices", "all", "--virtual", *QUICK)
    runs = {"clean": run_fleet(folders["clean"], *soak, limit_s=400)}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        started = {
            name: pool.submit(
                run_fleet, folders[name], *soak, "--set", f"harness.defect={name}", limit_s=120
            )
            for name in DEFECTS
        }
    return runs | {name: future.result() for name, future in started.items()}
