"""Rules about what a package shows to the app: shapes, names, target, converter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.inspect import minimum_os
from orchestrator.mlpackage.lint.rule import Level, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.mlpackage.lint.rule import FunctionFacts, Subject

_IOS18_SPECIFICATION: Final = 9
_IOS18_OPSET: Final = 8
_CONVERTER_KEY: Final = "com.github.apple.coremltools.version"
_CRASHING_CONVERTERS: Final = ("9.0",)


def _unbounded(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        for feature in facts.function.inputs:
            if any(most is None for _, most in feature.ranges):
                yield f"{facts.function.name}: input {feature.name} has an axis without a bound"


def _flexible(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        for feature in facts.function.inputs:
            if feature.enumerated:
                shapes = f"{len(feature.enumerated)} enumerated shapes"
                yield f"{facts.function.name}: input {feature.name} has {shapes}"
            elif feature.is_flexible and all(most is not None for _, most in feature.ranges):
                yield f"{facts.function.name}: input {feature.name} has a range of shapes"


def _undeclared(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        function = facts.function
        declared = {feature.name for feature in (*function.inputs, *function.states)}
        differing = sorted({parameter.name for parameter in function.parameters} ^ declared)
        if differing:
            yield f"{function.name}: program and description differ in {', '.join(differing)}"


def _too_old(subject: Subject) -> Iterator[str]:
    model = subject.package.model
    if model.spec_version < _IOS18_SPECIFICATION:
        yield (
            f"specification {model.spec_version} is for {minimum_os(model.spec_version)}; "
            f"states need iOS 18, specification {_IOS18_SPECIFICATION}"
        )
    for facts in subject.functions:
        version = facts.function.opset.removeprefix("CoreML")
        if version.isdecimal() and int(version) < _IOS18_OPSET:
            yield f"{facts.function.name}: opset {facts.function.opset}; states need CoreML8"


def _crashing_converter(subject: Subject) -> Iterator[str]:
    version = subject.package.model.metadata.get(_CONVERTER_KEY, "")
    if not version.startswith(_CRASHING_CONVERTERS) or not subject.model_has_state:
        return
    if any(_has_four_bits(facts) for facts in subject.functions):
        yield f"4-bit palettes with states, made by coremltools {version}"


def _has_four_bits(facts: FunctionFacts) -> bool:
    return any(weight.bits == 4 and "lut" in weight.encoding for weight in facts.weights)


def _wide_prefill(subject: Subject) -> Iterator[str]:
    if len(subject.functions) < 2:
        return
    for facts in subject.functions:
        if len(facts.states) > 1 and _width(facts) > 1:
            yield (
                f"{facts.function.name}: {_width(facts)} tokens and {len(facts.states)} states in "
                f"a package of {len(subject.functions)} functions"
            )


def _width(facts: FunctionFacts) -> int:
    """Return the tokens of one prediction: the last axis of the first integer input."""
    for feature in facts.function.inputs:
        if feature.type.dtype == "int32" and feature.type.shape:
            return feature.type.shape[-1] or 1
    return 1


def _fused_attention(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        count = sum(op.kind == "scaled_dot_product_attention" for op in facts.function.block.walk())
        if count:
            yield f"{facts.function.name}: {count} operations scaled_dot_product_attention"


def _missing_names(subject: Subject) -> Iterator[str]:
    if not subject.is_first:
        return
    present = {
        feature.name
        for package in subject.model
        for function in package.model.functions.values()
        for feature in (*function.inputs, *function.outputs, *function.states)
    }
    for role, names in subject.expected.names.items():
        for name in names:
            if name not in present:
                yield f"no input, output or state {name!r}, which is named for {role}"


RULES: Final = (
    Rule(
        "shape.unbounded",
        Level.ERROR,
        _unbounded,
        "An axis without a bound keeps the model off the Neural Engine and lets the memory of a "
        "prediction grow with the prompt.",
        "apple.github.io/coremltools/docs-guides/source/flexible-inputs.html",
        "Use fixed shapes: one function for decode, one for prefill",
    ),
    Rule(
        "shape.flexible",
        Level.WARNING,
        _flexible,
        "A range reaches the Neural Engine only at its default shape; several enumerated inputs "
        "are not known to work with states.",
        "developer.apple.com/forums/thread/724930",
        "Use fixed shapes: one function for decode, one for prefill",
    ),
    Rule(
        "interface.undeclared",
        Level.ERROR,
        _undeclared,
        "A model whose program and description differ in inputs or states does not load.",
        "github.com/apple/coremltools/issues/2278",
        "Save the package again with the converter",
    ),
    Rule(
        "interface.names",
        Level.ERROR,
        _missing_names,
        "The app asks for a feature by a name that the package does not have: the load fails.",
        "fleet.yaml, model.names",
        "Correct model.names: `fleet model inspect` prints the names that the package has",
    ),
    Rule(
        "target.ios18",
        Level.ERROR,
        _too_old,
        "MLState came with iOS 18: a model for an older target has no states.",
        "developer.apple.com/documentation/coreml/mlstate",
        "Convert with minimum_deployment_target=ct.target.iOS18",
    ),
    Rule(
        "converter.stateful-4bit",
        Level.WARNING,
        _crashing_converter,
        "Stateful models with 4-bit palettes made by coremltools 9.0 are reported to crash after "
        "100 to 200 predictions on the Neural Engine; made by 8.3.0 they survive.",
        "github.com/apple/coremltools/issues/2716",
        "Soak it before you ship it, and compare with a build by coremltools 8.3.0",
    ),
    Rule(
        "functions.prefill-states",
        Level.WARNING,
        _wide_prefill,
        "A prefill function with two states in a package of several functions is reported refused "
        "by the compiler of an iPhone 17 Pro (`ANECCompile FAILED 11`); alone it compiles.",
        "john-rocky/CoreML-LLM, docs/MLSTATE_MULTIMODAL_PROBE.md",
        "Save decode and prefill as packages of their own",
    ),
    Rule(
        "attention.fused",
        Level.WARNING,
        _fused_attention,
        "The fused attention operation is reported to give wrong tokens on the Neural Engine.",
        "john-rocky/CoreML-LLM, docs/DEPLOYMENT.md",
        "Write attention as matmul, add, softmax, matmul",
    ),
)
