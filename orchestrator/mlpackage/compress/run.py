"""Compresses a package: plan, functions one by one, one package again, and what it cost."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.coreml import unclosed_scratch
from orchestrator.mlpackage.build.recipe import (
    BLOCK_COLUMNS,
    COMPRESSED_KEY,
    GROUP_ROWS,
    RECIPE_KEY,
    Weights,
)
from orchestrator.mlpackage.build.saving import make_reproducible, make_way
from orchestrator.mlpackage.compress.functions import single_function
from orchestrator.mlpackage.compress.palettes import palette
from orchestrator.mlpackage.compress.plan import Keep, plan_compression
from orchestrator.mlpackage.digest import folder_digest
from orchestrator.mlpackage.package import Package, read_package
from orchestrator.mlpackage.verify.interpreter import Interpreter
from orchestrator.mlpackage.verify.measure import plan_for, run_plan
from orchestrator.mlpackage.verify.subject import load_subject
from orchestrator.mlpackage.verify.truth import truth_for
from orchestrator.mlpackage.verify.weights_match import relative_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.mlpackage.build.coreml import Mil, MilObject
    from orchestrator.mlpackage.compress.plan import CompressionPlan


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """How far outputs are from the independent forward of the uncompressed recipe."""

    positions: int
    spread: float  # standard deviation of the right output
    max_error_before: float
    max_error_after: float
    top1_equal_after: float  # share, 0 to 1


@dataclass(frozen=True, slots=True)
class Compressed:
    """What a compression did."""

    package: Path
    digest: str
    bytes_before: int
    bytes_after: int
    compressed: int  # weights
    kept: dict[str, str]  # name and reason
    error: float  # of all compressed weights together: root mean square over root mean square
    worst_weight: str
    worst_error: float
    outputs: OutputDifference | None  # None for packages that say nothing of what they compute


def compress(
    mil: Mil,
    source: Path,
    weights: Weights,
    keep: Iterable[Keep],
    out: Path,
) -> Compressed:
    """Compress a package.

    Args:
        mil: What `coreml.load` returned.
        source: The package; it is not changed.
        weights: The precision wanted: lut4, int8 or int4.
        keep: Which weights stay as they are.
        out: The new `.mlpackage`; one that exists is replaced.

    Raises:
        UsageError: If `out` is no `.mlpackage` or is `source`.
        PackageError: If the package cannot be read, is compressed already, or nothing in it can be.
    """
    if out.suffix != ".mlpackage" or out.resolve() == source.resolve():
        raise UsageError(f"{out} must be another folder that ends in .mlpackage")
    package = read_package(source)
    plan = plan_compression(source, package.model, weights, keep)
    metadata = _own_metadata(package) | {COMPRESSED_KEY: weights.value}
    functions = list(package.model.functions)
    with unclosed_scratch():
        models = {
            name: _compressed_function(mil, single_function(mil, package, name), plan, weights)
            for name in functions
        }
        make_way(out)
        if len(functions) == 1:
            models[functions[0]].save(str(out))
        else:
            _save_together(mil, models, package.model.default_function, out)
    make_reproducible(mil, out, metadata)
    return _figures(package, read_package(out), plan)


def _own_metadata(package: Package) -> dict[str, str]:
    entries = package.model.metadata.items()
    return {key: text for key, text in entries if not key.startswith("com.github.apple.")}


def _compressed_function(
    mil: Mil,
    model: MilObject,
    plan: CompressionPlan,
    weights: Weights,
) -> MilObject:
    tools = mil.ct.optimize.coreml
    if weights is Weights.LUT4:
        wanted = tools.OpPalettizerConfig(
            mode="custom",
            lut_function=palette,
            granularity="per_grouped_channel",
            group_size=GROUP_ROWS,
        )
        apply = tools.palettize_weights
    elif weights is Weights.INT8:
        wanted = tools.OpLinearQuantizerConfig(
            mode="linear_symmetric", dtype="int8", granularity="per_channel"
        )
        apply = tools.linear_quantize_weights
    else:
        wanted = tools.OpLinearQuantizerConfig(
            mode="linear_symmetric",
            dtype="int4",
            granularity="per_block",
            block_size=BLOCK_COLUMNS,
        )
        apply = tools.linear_quantize_weights
    # By name alone: what is not named stays, so no table is taken along by its size.
    configuration = tools.OptimizationConfig(global_config=None)
    for name in plan.compressed:
        configuration.set_op_name(name, wanted)
    return apply(model, configuration)


def _save_together(
    mil: Mil,
    models: dict[str, MilObject],
    default: str,
    out: Path,
) -> None:
    """Save functions as one package; equal weights are stored once."""
    with tempfile.TemporaryDirectory(prefix="fleet-compress-") as scratch:
        descriptor = mil.ct.utils.MultiFunctionDescriptor()
        for name, model in models.items():
            single = Path(scratch) / f"{name}.mlpackage"
            model.save(str(single))
            descriptor.add_function(str(single), "main", name)
        descriptor.default_function_name = default
        mil.ct.utils.save_multifunction(descriptor, str(out))


def _figures(before: Package, after: Package, plan: CompressionPlan) -> Compressed:
    errors = _weight_errors(before, after, plan)
    worst = max(errors, key=lambda name: errors[name])
    return Compressed(
        package=after.path,
        digest=folder_digest(after.path),
        bytes_before=before.package_bytes,
        bytes_after=after.package_bytes,
        compressed=len(plan.compressed),
        kept=plan.kept,
        error=(sum(error * error for error in errors.values()) / len(errors)) ** 0.5,
        worst_weight=worst,
        worst_error=errors[worst],
        outputs=_output_difference(before, after),
    )


def _weight_errors(before: Package, after: Package, plan: CompressionPlan) -> dict[str, float]:
    """Return the error of every compressed weight, in units of the weight's own size."""
    errors: dict[str, float] = {}
    for name in before.model.functions:
        function = name if len(before.model.functions) > 1 else None
        old, new = Interpreter(before, function), Interpreter(after, function)
        for weight in plan.compressed:
            if weight not in errors and weight in set(old.weight_names()):
                errors[weight] = relative_error(new.weight(weight), old.weight(weight))
    return errors


def _output_difference(before: Package, after: Package) -> OutputDifference | None:
    if RECIPE_KEY not in before.model.metadata:
        return None
    old, new = load_subject(before.path), load_subject(after.path)
    steps = plan_for(old)
    truth = truth_for(old, steps[-1].start + steps[-1].count)
    measured_old, _ = run_plan(old, steps, truth)
    measured_new, _ = run_plan(new, steps, truth)
    return OutputDifference(
        positions=measured_new.positions,
        spread=truth.spread,
        max_error_before=measured_old.max_error,
        max_error_after=measured_new.max_error,
        top1_equal_after=measured_new.top1_equal / max(1, measured_new.positions),
    )
