"""Lints the packages of one model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.lint import interface, states, weights
from orchestrator.mlpackage.lint.rule import Expectations, Finding, Rule, Subject, functions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.mlpackage.package import Package

RULES: Final[tuple[Rule, ...]] = (*states.RULES, *weights.RULES, *interface.RULES)


def lint(packages: Sequence[Package], expected: Expectations | None = None) -> list[Finding]:
    """Return what the rules find in the packages of one model, in the order of the rules.

    Args:
        packages: All packages of one model: chunks without a state are in order if another
            chunk has one.
        expected: What the person says of the model.
    """
    model = tuple(packages)
    return [
        finding
        for package in model
        for finding in _findings(
            Subject(package, functions_of(package), expected or Expectations(), model)
        )
    ]


def _findings(subject: Subject) -> list[Finding]:
    return [
        Finding(rule.id, rule.level, str(subject.package.path), message, rule.remedy)
        for rule in RULES
        for message in rule.check(subject)
    ]
