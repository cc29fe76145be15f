from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from orchestrator.report.stamps import Surroundings, stamps_of
from orchestrator.runlog.documents import HealthDocument
from orchestrator.verdict.judge import judge
from tests.report.runs import LINES, PHONE, PLAN, SPEC
from tests.verdict.host_side import case_of, device_of

if TYPE_CHECKING:
    from orchestrator.verdict.environment import Environment

HEALTH = HealthDocument(
    read_at_s=0.0,
    battery_percent=87,
    charging=True,
    free_disk_bytes=None,
    developer_mode=None,
    ddi_mounted=None,
    locked=None,
    clock_offset_s=None,
    clock_uncertainty_s=None,
)


@pytest.fixture(scope="module")
def environment() -> Environment:
    return judge(case_of(SPEC), LINES).environment


@pytest.fixture
def around(environment: Environment) -> Surroundings:
    return Surroundings(PLAN, PHONE, device_of(), None, environment)


def shown(around: Surroundings) -> dict[str, str]:
    return dict(stamps_of(around).shown)


def test_the_stamps_are_those_of_the_first_records(around: Surroundings) -> None:
    told = shown(around)
    assert told["iOS build"] == "22E240"
    assert told["Model digest"] == "abababababab"
    assert told["Harness build"] == "test"
    assert told["Harness app"] == "fleet-harness 0.1.0"
    assert told["Thermal state at the start"] == "nominal"
    assert told["Low power mode"] == "no"
    assert told["Raised memory limit"] == "no"
    assert told["Placement"] == "neural engine 112, cpu 1"
    assert told["Weights"] == "int8, 8 bits each, 700.0 MiB"
    assert told["Memory"] == "7,649.5 MiB, class 8gb"
    assert told["Scenario"] == "test, seed 7"


def test_the_health_gate_knows_what_the_app_does_not_say(around: Surroundings) -> None:
    assert shown(around)["Charger"] == "not said"
    told = shown(replace(around, health=HEALTH))
    assert (told["Charger"], told["Battery"]) == ("connected", "87 % before the start")


def test_what_the_app_says_wins(around: Surroundings) -> None:
    first, last = around.environment.first_sample, around.environment.last_sample
    assert first is not None
    assert last is not None
    spoken = replace(
        around.environment,
        first_sample=structs.replace(first, charging=False, battery_percent=90.0),
        last_sample=structs.replace(last, battery_percent=60.0),
    )
    told = shown(replace(around, environment=spoken, health=HEALTH))
    assert (told["Charger"], told["Battery"]) == ("not connected", "90 % to 60 %")


def test_the_commit_is_the_plans(around: Surroundings) -> None:
    app = structs.replace(PLAN.app, commit="c0ffee")
    told = shown(replace(around, plan=structs.replace(PLAN, app=app)))
    assert told["Harness commit"] == "c0ffee"
    assert shown(around)["Harness commit"] == "not said"


def test_a_phone_that_never_spoke_has_stamps_too(around: Surroundings) -> None:
    silent = judge(case_of(SPEC), []).environment
    told = shown(replace(around, device=None, environment=silent))
    assert told["Model digest"] == "not said"
    assert told["iOS build"] == PHONE.build
    assert told["Placement"] == "no compute plan"


def test_a_hostile_plan_of_compute_is_counted_as_far_as_it_reads(around: Surroundings) -> None:
    load = around.environment.load
    assert load is not None
    plan: list[dict[str, object]] = [{"device": 7}, {"device": "x" * 999, "ops": 3}, {"ops": 2}]
    hostile = replace(around.environment, load=structs.replace(load, plan=plan))
    assert len(shown(replace(around, environment=hostile))["Placement"]) == 121
