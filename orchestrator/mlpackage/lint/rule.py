"""What a rule is, what it looks at, and what it finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.cache import CachedState, cached_states
from orchestrator.mlpackage.stored import Layers, StoredWeight, layers, stored_weights

if TYPE_CHECKING:
    from orchestrator.mlpackage.graph import Function
    from orchestrator.mlpackage.package import Package

_PART_KEY: Final = "fleet.part"  # what our own builder says of a package, as JSON


class Level(StrEnum):
    """How bad a finding is; only errors fail a lint."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Expectations:
    """What the person who lints says of the model."""

    bits: int | None = None  # per stored element of the inner layers
    host_writes_states: bool = False
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by role


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """One function with what the rules ask of it."""

    function: Function
    states: tuple[CachedState, ...]
    weights: tuple[StoredWeight, ...]
    layers: Layers

    @classmethod
    def of(cls, function: Function) -> FunctionFacts:
        """Gather the facts of a function."""
        weights = stored_weights(function)
        return cls(function, cached_states(function), weights, layers(weights))


@dataclass(frozen=True, slots=True)
class Subject:
    """A package under lint, with the others of its model."""

    package: Package
    functions: tuple[FunctionFacts, ...]
    expected: Expectations
    model: tuple[Package, ...]  # all packages of the model, this one included

    @property
    def is_first(self) -> bool:
        """Whether findings about the model as a whole are told here, so that they are told once."""
        return self.package is self.model[0]

    @property
    def model_has_state(self) -> bool:
        """Whether any package of the model has a state."""
        return any(
            function.states
            for package in self.model
            for function in package.model.functions.values()
        )

    @property
    def host_writes_states(self) -> bool:
        """Whether the host appends the rows: said by the person or by our own builder."""
        if self.expected.host_writes_states:
            return True
        try:
            part = json.loads(self.package.model.metadata.get(_PART_KEY, "{}"))
        except (ValueError, RecursionError):
            return False
        return isinstance(part, dict) and part.get("layout") == "host-state"


# Yields one sentence per finding; a package in order yields none.
Check = Callable[[Subject], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its id is stable and names its page, `docs/lint/<id>.md`."""

    id: str
    level: Level
    check: Check
    failure: str  # what happens on a phone
    source: str  # who met it
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken by one package."""

    rule: str
    level: Level
    package: str
    message: str
    remedy: str


def functions_of(package: Package) -> tuple[FunctionFacts, ...]:
    """Return the facts of all functions of a package."""
    return tuple(FunctionFacts.of(function) for function in package.model.functions.values())
