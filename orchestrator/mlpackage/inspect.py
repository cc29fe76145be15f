"""What `fleet model inspect` says about a package. Pure over a package that was read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.activations import activation_bytes
from orchestrator.mlpackage.cache import Architecture, CachedState, architecture, cached_states
from orchestrator.mlpackage.package import constants
from orchestrator.mlpackage.stored import StoredWeight, layers, stored_weights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.mlpackage.graph import BlobRef, Feature, Function
    from orchestrator.mlpackage.package import Package

_SYSTEMS: Final = {6: "iOS 15", 7: "iOS 16", 8: "iOS 17", 9: "iOS 18", 10: "iOS 26"}


@dataclass(frozen=True, slots=True)
class Precision:
    """Bytes of one element type in the weight files, every tensor counted once."""

    tensors: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FunctionReport:
    """One function of a package."""

    name: str
    opset: str
    operations: int  # constants not counted
    inputs: tuple[Feature, ...]
    outputs: tuple[Feature, ...]
    states: tuple[CachedState, ...]
    architecture: Architecture
    vocabulary: int | None
    hidden: int | None
    first_layer: str | None  # its precision; None where the package has no embedding
    last_layer: str | None  # None where the package has no projection to the vocabulary
    inner_layers: Mapping[str, int]  # precision to number of weights
    activations_bytes: int


@dataclass(frozen=True, slots=True)
class PackageReport:
    """What one package holds."""

    package: str
    digest: str | None  # None: not computed, see `digest_cache`
    spec_version: int
    minimum_os: str
    default_function: str
    package_bytes: int
    specification_bytes: int
    weights_bytes: int  # of all weight files
    parameters: int  # elements of all weights as they compute
    bits_per_weight: float | None  # tables and scales included
    precisions: Mapping[str, Precision]
    functions: tuple[FunctionReport, ...]
    metadata: Mapping[str, str]


def report(package: Package, digest: str | None) -> PackageReport:
    """Return what a package holds.

    Args:
        package: A package that was read.
        digest: Its digest where it is known.
    """
    weights = {f.name: stored_weights(f) for f in package.model.functions.values()}
    unique = {w.parts: w for found in weights.values() for w in found if w.parts}
    parameters = sum(weight.element_count for weight in unique.values())
    stored = {part for parts in unique for part in parts}
    return PackageReport(
        package=str(package.path),
        digest=digest,
        spec_version=package.model.spec_version,
        minimum_os=minimum_os(package.model.spec_version),
        default_function=package.model.default_function,
        package_bytes=package.package_bytes,
        specification_bytes=package.specification_bytes,
        weights_bytes=weights_bytes(package),
        parameters=parameters,
        bits_per_weight=_bits_per_weight(package, stored, parameters),
        precisions=_precisions(package),
        functions=tuple(
            _function(function, weights[name]) for name, function in package.model.functions.items()
        ),
        metadata=package.model.metadata,
    )


def minimum_os(spec_version: int) -> str:
    """Return the oldest system that loads a specification version."""
    return _SYSTEMS.get(spec_version, f"specification {spec_version}")


def weights_bytes(package: Package) -> int:
    """Return the bytes of all weight files of a package."""
    return sum(file.size_bytes for file in package.weights.values())


def precision(weights: Iterable[StoredWeight]) -> str | None:
    """Return `dense fp16`, `lut_to_dense 4 bit`, ...; several are joined; None for no weight."""
    names = sorted({_precision_name(weight) for weight in weights})
    return ", ".join(names) if names else None


def _precision_name(weight: StoredWeight) -> str:
    if not weight.is_compressed:
        return f"dense {weight.dtype}"
    return f"{weight.encoding} {weight.bits} bit"


def _function(function: Function, weights: tuple[StoredWeight, ...]) -> FunctionReport:
    sorted_layers = layers(weights)
    projected = sum(weight.out_features for weight in sorted_layers.output)
    inner = Counter(_precision_name(weight) for weight in sorted_layers.inner)
    return FunctionReport(
        name=function.name,
        opset=function.opset,
        operations=sum(op.kind != "const" for op in function.block.walk()),
        inputs=function.inputs,
        outputs=function.outputs,
        states=cached_states(function),
        architecture=architecture(function),
        vocabulary=projected or None,
        hidden=sorted_layers.hidden,
        first_layer=precision(sorted_layers.embedding),
        last_layer=precision(sorted_layers.output),
        inner_layers=dict(sorted(inner.items())),
        activations_bytes=activation_bytes(function),
    )


def _precisions(package: Package) -> dict[str, Precision]:
    referenced = {value.blob for _, value in constants(package.model) if value.blob}
    sizes: dict[str, list[int]] = {}
    for blob in referenced:
        record = package.record(blob)
        sizes.setdefault(record.dtype, []).append(record.size_bytes)
    return {dtype: Precision(len(found), sum(found)) for dtype, found in sorted(sizes.items())}


def _bits_per_weight(package: Package, stored: set[BlobRef], parameters: int) -> float | None:
    if not parameters:
        return None
    size_bytes = sum(package.record(part).size_bytes for part in stored)
    return round(size_bytes * 8 / parameters, 2)
