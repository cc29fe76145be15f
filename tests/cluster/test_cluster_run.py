"""Several hosts as one fleet, in processes of their own on loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.runlog.manifest import differing_files
from tests.chaos.killed_runs import WORKLOAD, ends_of
from tests.cluster.members import RUN_LIMIT_S, cluster, needs_dask
from tests.end_to_end.fleet_process import WITHOUT_SWIFT, run_fleet

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_dask, pytest.mark.deep, pytest.mark.timeout(600)]


def test_three_hosts_find_what_one_host_finds_check_by_check(tmp_path: Path) -> None:
    with cluster(tmp_path, hosts=3, phones=4) as fleet:
        listed = fleet.fleet("devices", "--json")
        assert listed.exit_code == 0, listed.stderr
        hosts = {phone["udid"]: phone["host"] for phone in json.loads(listed.stdout)}
        assert sorted(hosts.values()) == sorted(["mini-1", "mini-2", "mini-3"] * 4)

        joined = fleet.fleet("soak", *WORKLOAD)
        assert joined.exit_code == 0, joined.stdout + joined.stderr
        plan = json.loads((joined.path / "plan.json").read_bytes())
        assert {phone["udid"]: phone["host"] for phone in plan["phones"]} == hosts
        assert {p["udid"]: p["host"] for p in joined.summary["phones"]} == hosts
        assert differing_files(joined.path) == []

        config = tmp_path / "one.yaml"
        sources = [
            f'  - {{name: {name}, usbmux: "{farm["usbmux"]}"}}'
            for name, farm in fleet.farms.items()
        ]
        config.write_text("sources:\n" + "\n".join(sources) + "\n")
        single = run_fleet(
            tmp_path,
            "soak",
            *WORKLOAD,
            "--config",
            str(config),
            limit_s=RUN_LIMIT_S,
            PATH=WITHOUT_SWIFT,
        )
        assert single.exit_code == 0, single.stdout + single.stderr
        together, alone = ends_of(joined), ends_of(single)
        assert together.keys() == alone.keys() == hosts.keys()
        for udid, end in alone.items():
            found = together[udid]
            assert (found.outcome, found.cause) == (end.outcome, end.cause)
            assert found.checks == end.checks
            assert found.ids == end.ids
