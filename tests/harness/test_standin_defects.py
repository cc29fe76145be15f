"""Every deliberate defect shows in the records of a soak."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable

import pytest

from tests.harness.judge import of_kind, wrong_tokens
from tests.harness.standin_process import PHONE_LIMIT_BYTES, SCALE, StandIn, slow

Launcher = Callable[..., StandIn]


def test_never_trim_passes_the_budget(launch: Launcher) -> None:
    records = launch(FLEET_DEFECT="never-trim").soak()
    assert of_kind(records, "trim") == []
    assert max(n for record in of_kind(records, "tokens") for n in record["n"]) > 64


def test_no_evict_records_the_warning_and_keeps_its_state(launch: Launcher) -> None:
    records = launch(FLEET_DEFECT="no-evict").soak(warnings=[{"at_token": 100}])
    assert len(of_kind(records, "memory_warning")) == 1
    assert of_kind(records, "evict") == []


@pytest.mark.parametrize(("defect", "budget"), [("", 128), ("naive-8gib", 64)])
def test_naive_8gib_takes_an_8_gb_phone_for_a_small_one(
    launch: Launcher, defect: str, budget: int
) -> None:
    hello = launch(FLEET_DEFECT=defect, FLEET_PHYSICAL_MEMORY_BYTES="8021032960").soak()[0]
    assert hello["budget"] == budget
    assert hello["quantization"] == ("int4" if defect else "int8")


def test_trim_stale_state_claims_trims_and_samples_wrong_tokens(launch: Launcher) -> None:
    records = launch(FLEET_DEFECT="trim-stale-state").soak()
    assert len(of_kind(records, "trim")) >= 3
    assert wrong_tokens(records) > 0


def test_jetsam_leaks_until_the_app_is_killed_and_its_journal_shows_the_way_there(
    launch: Launcher,
) -> None:
    app = launch(FLEET_DEFECT="jetsam:100")
    client = app.connect()
    client.hello()
    app.start(client, stop_after_tokens=None, speed=slow(), sample_period_ms=10_000)
    statm = f"/proc/{app.process.pid}/statm"
    while True:  # the kernel's part
        with open(statm) as counters:
            resident, shared = map(int, counters.read().split()[1:3])
        if (resident - shared) * os.sysconf("SC_PAGESIZE") * SCALE > PHONE_LIMIT_BYTES:
            break
        time.sleep(0.002)
    app.process.kill()
    records = [json.loads(line) for line in app.journal.splitlines()]
    samples = of_kind(records, "sample")
    assert samples[-1]["footprint"] > 0.95 * PHONE_LIMIT_BYTES
    steps = [b["footprint"] - a["footprint"] for a, b in itertools.pairwise(samples)]
    assert max(steps[1:]) < 0.04 * PHONE_LIMIT_BYTES
    assert records[-1]["kind"] != "bye"
