"""Every rule: a package that breaks it, and its near miss that does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from orchestrator.mlpackage.lint.rule import Expectations, Finding, Level
from orchestrator.mlpackage.lint.run import RULES, lint
from orchestrator.mlpackage.package import read_package
from tests.mlpackage.small import LENGTH, PAIR, Decoder, Input, State, Weights, write_package

GOOD = Decoder(inner=("int8", "int8"))
CONVERTER = "com.github.apple.coremltools.version"
HOST_WRITTEN = {"fleet.part": '{"layout": "host-state"}'}
PAGES = Path(__file__).parents[2] / "docs" / "lint"


@dataclass(frozen=True)
class Given:
    functions: dict[str, Decoder] = field(default_factory=lambda: {"main": GOOD})
    spec_version: int = 9
    metadata: dict[str, str] = field(default_factory=dict)
    expected: Expectations = field(default_factory=Expectations)
    weights_bytes: int | None = None  # of the weight file, most of it a hole
    unused: bool = False


def one(decoder: Decoder, **others: object) -> Given:
    return Given(functions={"main": decoder}, **others)  # type: ignore[arg-type]


def mask(*ranges: tuple[int, int]) -> Input:
    return Input("causal_mask", "fp16", (1, 1, 1, LENGTH), ranges=ranges)


def tokens(*ranges: tuple[int, int], enumerated: tuple[tuple[int, ...], ...] = ()) -> Input:
    return Input("input_ids", "int32", (1, 1), enumerated, ranges)


FIXED = ((1, 1), (1, 1), (1, 1))
CASES: dict[str, tuple[Given, Given]] = {
    "state.none": (one(replace(GOOD, states=())), Given()),
    "state.dtype": (one(replace(GOOD, states=(State("k", dtype="fp32"),))), Given()),
    "state.width": (
        one(replace(GOOD, states=(State("k", (1, 2, LENGTH, 40)),))),
        one(replace(GOOD, states=(State("k", (1, 2, LENGTH, 96)),))),
    ),
    "state.count": (one(replace(GOOD, states=(*PAIR, State("more")))), Given()),
    "state.unwritten": (
        one(replace(GOOD, written=False)),
        one(replace(GOOD, written=False), metadata=HOST_WRITTEN),
    ),
    "state.alias": (one(replace(GOOD, output_is_written=True)), Given()),
    "length.maximum": (
        one(replace(GOOD, mask=mask(*FIXED, (1, LENGTH + 1)))),
        one(replace(GOOD, mask=mask(*FIXED, (1, LENGTH)))),
    ),
    "functions.disagree": (
        Given(functions={"decode": GOOD, "prefill": replace(GOOD, states=PAIR[:1])}),
        Given(functions={"decode": GOOD, "prefill": replace(GOOD, width=8)}),
    ),
    "weights.boundary": (one(replace(GOOD, output="lut4")), one(replace(GOOD, output="dense"))),
    "weights.tables": (one(replace(GOOD, table="int8")), Given()),
    "weights.bits": (Given(expected=Expectations(bits=4)), Given(expected=Expectations(bits=8))),
    "weights.mixed": (one(replace(GOOD, inner=("int8", "lut4"))), Given()),
    "weights.lut-axes": (
        one(replace(GOOD, inner=("lut4",), lut_groups=(2, 2))),
        one(replace(GOOD, inner=("lut4",), lut_groups=(4, 1))),
    ),
    "weights.gpu-fallback": (
        Given(weights_bytes=1_400_000_001),
        Given(weights_bytes=1_400_000_000),
    ),
    "weights.reclaim": (Given(weights_bytes=2_000_000_001), Given(weights_bytes=2_000_000_000)),
    "weights.orphans": (Given(unused=True), Given()),
    "shape.unbounded": (
        one(replace(GOOD, tokens=tokens((1, 1), (1, -1)))),
        one(replace(GOOD, tokens=tokens((1, 1), (1, 64)))),
    ),
    "shape.flexible": (
        one(replace(GOOD, tokens=tokens(enumerated=((1, 1), (1, 64))))),
        one(replace(GOOD, tokens=tokens((1, 1), (1, 1)))),
    ),
    "interface.undeclared": (one(replace(GOOD, undeclared=("position_ids",))), Given()),
    "interface.names": (
        Given(expected=Expectations(names={"causal_mask": ("causalMask",)})),
        Given(expected=Expectations(names={"causal_mask": ("causal_mask",)})),
    ),
    "target.ios18": (Given(spec_version=8), Given(spec_version=9)),
    "converter.stateful-4bit": (
        one(replace(GOOD, inner=("lut4",)), metadata={CONVERTER: "9.0"}),
        one(replace(GOOD, inner=("lut4",)), metadata={CONVERTER: "8.3.0"}),
    ),
    "functions.prefill-states": (
        Given(functions={"decode": GOOD, "prefill": replace(GOOD, width=8)}),
        one(replace(GOOD, width=8)),
    ),
    "attention.fused": (one(replace(GOOD, fused_attention=True)), Given()),
}


def findings(given: Given, path: Path) -> list[Finding]:
    weights = Weights()
    if given.unused:
        weights.add("unused", "fp16", 64)
    package = write_package(
        path,
        given.functions,
        spec_version=given.spec_version,
        metadata=given.metadata,
        weights=weights,
    )
    if given.weights_bytes is not None:
        with (package / "Data/com.apple.CoreML/weights/weight.bin").open("r+b") as file:
            file.truncate(given.weights_bytes)
    return lint([read_package(package)], given.expected)


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == {rule.id for rule in RULES}


@pytest.mark.parametrize("rule", CASES)
def test_a_package_that_breaks_the_rule_is_found(rule: str, tmp_path: Path) -> None:
    found = findings(CASES[rule][0], tmp_path / "broken.mlpackage")
    assert rule in {finding.rule for finding in found}


@pytest.mark.parametrize("rule", CASES)
def test_its_near_miss_is_not_found(rule: str, tmp_path: Path) -> None:
    found = findings(CASES[rule][1], tmp_path / "near.mlpackage")
    assert rule not in {finding.rule for finding in found}


def test_a_package_in_order_gives_nothing(tmp_path: Path) -> None:
    assert findings(Given(), tmp_path / "good.mlpackage") == []


def test_a_chunk_without_a_state_is_in_order_beside_one_that_has_it(tmp_path: Path) -> None:
    head = replace(GOOD, states=(), embedding=None, inner=())
    paths = [
        write_package(tmp_path / "layers.mlpackage", {"main": replace(GOOD, output=None)}),
        write_package(tmp_path / "head.mlpackage", {"main": head}),
    ]
    assert lint([read_package(path) for path in paths]) == []


def test_a_finding_about_the_whole_model_is_told_once(tmp_path: Path) -> None:
    stateless = {"main": replace(GOOD, states=())}
    read = [read_package(write_package(tmp_path / f"{name}.mlpackage", stateless)) for name in "ab"]
    assert [finding.rule for finding in lint(read)] == ["state.none"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_page_that_says_its_failure_and_source(rule: object) -> None:
    from orchestrator.mlpackage.lint.rule import Rule

    assert isinstance(rule, Rule)
    page = " ".join((PAGES / f"{rule.id}.md").read_text(encoding="utf-8").split())
    for text in (rule.id, rule.failure, rule.source, rule.remedy, f"Level: {rule.level}"):
        assert text in page


def test_no_page_is_without_a_rule() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == {rule.id for rule in RULES}


def test_only_errors_are_errors() -> None:
    assert {rule.level for rule in RULES} == set(Level)
