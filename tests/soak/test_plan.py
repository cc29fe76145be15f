import re

import pytest

from orchestrator.config.load import validate
from orchestrator.config.model import FleetConfig
from orchestrator.config.position import parse_yaml
from orchestrator.config.scenario_catalog import SMOKE
from orchestrator.device.selection import Skipped
from orchestrator.domain.phone import Phone
from orchestrator.harness.models import witness_packages
from orchestrator.runlog.documents import PlanDocument, PlannedApp
from orchestrator.soak.plan import (
    Absence,
    Participants,
    expectation_of,
    lowered_budgets,
    make_plan,
    nonce_of,
)

PACKAGES = {package.quantization: package for package in witness_packages()}
APP = PlannedApp(kind="swift", bundle_id="dev.example.harness", name="Harness", package_sha256="0")


def phone(product_type: str, alias: str = "bench-01") -> Phone:
    return Phone(
        udid="00008140-000A1B2C3D4E5F60",
        alias=alias,
        name="A phone",
        product_type=product_type,
        os="18.5",
        build="22F76",
        source="usb",
        virtual=False,
    )


def config(text: str = "") -> FleetConfig:
    return validate(parse_yaml(text, "f"))


def plan_of(*phones: Phone, absent: tuple[Absence, ...] = ()) -> PlanDocument:
    skipped = (Skipped(phone("iPhone18,3", "new"), "not covered"),)
    participants = Participants(tuple(phones), skipped, absent)
    return make_plan("run", 7, config(), SMOKE, participants, APP, PACKAGES)


@pytest.mark.parametrize(
    ("product_type", "budget_tokens", "quantization"),
    [
        ("iPhone14,7", 1024, "int4"),
        ("iPhone16,1", 2048, "int8"),  # reports less than 8 GiB and still is the 8 GB class
        ("iPhone17,3", 2048, "int8"),
        ("iPhone18,2", 2048, "int8"),
    ],
)
def test_the_host_expects_budget_and_quantization_of_the_class(
    product_type: str, budget_tokens: int, quantization: str
) -> None:
    expected = expectation_of(phone(product_type), config(), PACKAGES)
    assert (expected.budget_tokens, expected.quantization) == (budget_tokens, quantization)
    assert expected.digest == PACKAGES[quantization].digest
    assert expected.bits_per_weight == {"int4": 4, "int8": 8}[quantization]


def test_a_scenario_budget_and_the_capacity_only_lower_the_budget() -> None:
    lowered = config("policy: {scenario_budget_tokens: 512}")
    raised = config("policy: {budget_tokens: {6gb: 100000}}")
    six = phone("iPhone14,7")
    assert expectation_of(six, lowered, PACKAGES).budget_tokens == 512
    assert expectation_of(six, raised, PACKAGES).budget_tokens == 4096


def test_a_budget_that_the_capacity_lowers_is_said_once_per_class() -> None:
    raised = config("policy: {budget_tokens: {6gb: 100000}}")
    phones = [phone("iPhone14,7"), phone("iPhone14,7", "two"), phone("iPhone17,3", "three")]
    expected = [expectation_of(one, raised, PACKAGES) for one in phones]
    (said,) = lowered_budgets(raised.policy, expected)
    assert "6gb phones, 100,000, " in said
    assert "lowered to 4,096" in said
    lowered = config("policy: {budget_tokens: {6gb: 100000}, scenario_budget_tokens: 512}")
    assert lowered_budgets(lowered.policy, expected) == []


def test_nonces_differ_between_phones_and_repeat_for_a_seed() -> None:
    assert re.fullmatch("[0-9a-f]{16}", nonce_of(1, "A"))
    assert nonce_of(1, "A") == nonce_of(1, "A")
    assert len({nonce_of(1, "A"), nonce_of(1, "B"), nonce_of(2, "A")}) == 3


def test_the_plan_names_everybody() -> None:
    plan = plan_of(phone("iPhone17,3"), absent=(Absence("U-12345678", "bench-09", "gone"),))
    assert [(p.alias, p.directory) for p in plan.phones] == [("bench-01", "bench-01-3D4E5F60")]
    assert [(a.alias, a.directory, a.reason) for a in plan.absent] == [
        ("bench-09", "bench-09-12345678", "gone")
    ]
    assert [(s.alias, s.reason) for s in plan.skipped] == [("new", "not covered")]
    assert plan.scenario["seed"] == 7


def test_the_plan_holds_no_defect() -> None:
    assert "defect" not in repr(plan_of(phone("iPhone17,3")))
