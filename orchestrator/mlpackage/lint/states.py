"""Rules about states: the key/value cache as Core ML keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.cache import aliased_outputs
from orchestrator.mlpackage.lint.rule import Level, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.mlpackage.lint.rule import Subject

_ALIGNED_ELEMENTS: Final = 32
_MOST_STATES: Final = 2


def _no_state(subject: Subject) -> Iterator[str]:
    if subject.is_first and not subject.model_has_state:
        yield "no function of the model declares a state"


def _not_fp16(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        for state in facts.states:
            if state.dtype != "fp16":
                yield f"{facts.function.name}: state {state.name} is {state.dtype}"


def _odd_width(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        for state in facts.states:
            width = state.shape[-1] if state.shape else None
            if width is not None and width % _ALIGNED_ELEMENTS:
                yield f"{facts.function.name}: state {state.name} is {width} elements wide"


def _too_many(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        if len(facts.states) > _MOST_STATES:
            yield f"{facts.function.name}: {len(facts.states)} states in one function"


def _never_written(subject: Subject) -> Iterator[str]:
    if subject.host_writes_states:
        return
    for facts in subject.functions:
        for state in facts.states:
            if not state.writes:
                yield f"{facts.function.name}: state {state.name} is never written"


def _aliased(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        for name in aliased_outputs(facts.function):
            yield f"{facts.function.name}: output {name} is also what a state write takes"


def _no_maximum(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        if facts.states and not any(state.length for state in facts.states):
            yield f"{facts.function.name}: no state has an axis along which rows are written"
            continue
        longest = max((state.length or 0 for state in facts.states), default=0)
        for feature in facts.function.inputs:
            if facts.states and len(feature.ranges) == 4:
                most = feature.ranges[-1][1]
                if most is None or most > longest:
                    bound = "without a bound" if most is None else f"up to {most}"
                    yield (
                        f"{facts.function.name}: input {feature.name} takes a context {bound}, "
                        f"the states hold {longest} rows"
                    )


def _disagree(subject: Subject) -> Iterator[str]:
    shapes = {
        facts.function.name: tuple((s.name, s.shape, s.dtype) for s in facts.states)
        for facts in subject.functions
    }
    if len(set(shapes.values())) > 1:
        described = "; ".join(
            f"{name}: {', '.join(f'{s} {dtype} {list(shape)}' for s, shape, dtype in states)}"
            for name, states in shapes.items()
        )
        yield f"functions disagree on their states: {described}"


RULES: Final = (
    Rule(
        "state.none",
        Level.ERROR,
        _no_state,
        "The cache travels as inputs and outputs: on one phone 1.7 GB of footprint instead of "
        "0.26 GB and a third of the speed, and there is nothing to trim or to evict.",
        "john-rocky/CoreML-LLM, README of v1.5 (Qwen3-VL-2B on iPhone 17 Pro, both ways)",
        "Convert with states (ct.StateType, iOS 18)",
    ),
    Rule(
        "state.dtype",
        Level.ERROR,
        _not_fp16,
        "Core ML states are fp16 in every model that is known to run; another type is refused or "
        "doubles the cache.",
        "apple.github.io/coremltools/docs-guides/source/stateful-models.html",
        "Declare the state as fp16",
    ),
    Rule(
        "state.width",
        Level.ERROR,
        _odd_width,
        "A stateful model whose state is not a multiple of 32 wide fails on the Neural Engine.",
        "github.com/apple/coremltools/issues/2631",
        "Pad the head dimension to a multiple of 32",
    ),
    Rule(
        "state.count",
        Level.ERROR,
        _too_many,
        "With three or more states the model converts and is planned for the Neural Engine, then "
        "every prediction fails with status 0x1d; on the CPU the output is garbage.",
        "john-rocky/CoreML-LLM, docs/MLSTATE_PATTERN.md",
        "Keep all layers in one state for keys and one for values, or cut the model in chunks",
    ),
    Rule(
        "state.unwritten",
        Level.ERROR,
        _never_written,
        "The cache stays zero: every token is drawn as if nothing came before it.",
        "developer.apple.com/documentation/coreml/mlstate (a new state is zero)",
        "Write the state in the graph, or give --host-state if the host writes its rows",
    ),
    Rule(
        "state.alias",
        Level.ERROR,
        _aliased,
        "A model with an output that is also the source of a state write crashes when it loads.",
        "github.com/apple/coremltools/pull/2713",
        "Return a copy, for example through an identity operation, or drop the output",
    ),
    Rule(
        "length.maximum",
        Level.ERROR,
        _no_maximum,
        "Without a hard maximum the context grows until the write leaves the state or the "
        "process passes its limit.",
        "this project's contract: at no prediction more than the budget",
        "Give the states a fixed length and bound the mask by it",
    ),
    Rule(
        "functions.disagree",
        Level.ERROR,
        _disagree,
        "A state made for one function does not fit the other: prefill and decode cannot share "
        "a conversation.",
        "developer.apple.com/documentation/coreml/mlmodel/makestate()",
        "Declare the same states in every function",
    ),
)
