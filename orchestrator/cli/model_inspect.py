"""`fleet model inspect`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.mlpackage.graph import Feature
    from orchestrator.mlpackage.inspect import FunctionReport, PackageReport
    from orchestrator.mlpackage.package import Package

app = typer.Typer(add_completion=False, rich_markup_mode=None)

# Above this a digest that is not remembered costs more than the whole inspection.
_HASHED_AT_ONCE_BYTES: Final = 64 * 1024**2


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def inspect(context: typer.Context) -> None:
    """Say what a package holds, with the standard library alone.

    Exits 2 where a package cannot be read. Example: fleet model inspect model.mlpackage --json
    """
    from orchestrator.cli.main import one_line
    from orchestrator.mlpackage.inspect import report
    from orchestrator.mlpackage.names import roles
    from orchestrator.mlpackage.package import find_packages, read_package, require_state

    # typer loads pydantic to convert any argument: 15 MB and 60 ms, half of what an inspection
    # may cost. So this one command reads its own arguments.
    asked = _parser().parse_args(context.args)
    paths = [path for given in asked.packages for path in find_packages(given)]
    packages = [read_package(path) for path in paths]
    require_state(packages)
    reports = [report(package, _digest(package, asked.digest)) for package in packages]
    names = roles(package.model for package in packages)
    if asked.json:
        _print_json(reports, names)
        return
    for line in (*(line for found in reports for line in lines(found)), *_names_lines(names)):
        print(one_line(line))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fleet model inspect",
        description="Say what a package holds, with the standard library alone.",
        epilog="Exits 2 where a package cannot be read. "
        "Example: fleet model inspect model.mlpackage --json",
    )
    parser.add_argument(
        "packages", nargs="+", type=Path, help="Packages, or folders that hold them."
    )
    parser.add_argument("--json", action="store_true", help="Print JSON on stdout.")
    parser.add_argument(
        "--digest", action="store_true", help="Hash large packages too: 1 s per 1.5 GB."
    )
    return parser


def _digest(package: Package, hash_large: bool) -> str | None:
    from orchestrator.mlpackage.digest_cache import (
        default_cache,
        known_digest,
        remember_digest,
        stamp_of,
    )

    known = known_digest(package.path, default_cache())
    if known is not None or not (hash_large or package.package_bytes <= _HASHED_AT_ONCE_BYTES):
        return known
    from orchestrator.mlpackage.digest import folder_digest

    stamp = stamp_of(package.path)
    digest = folder_digest(package.path)
    remember_digest(package.path, stamp, digest, default_cache())
    return digest


def _names_lines(names: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    yield "names for fleet.yaml, below model:"
    yield "  names:"
    yield from (f"    {role}: [{', '.join(found)}]" for role, found in names.items())


def _print_json(reports: list[PackageReport], names: Mapping[str, tuple[str, ...]]) -> None:
    import dataclasses
    import json

    documents = [dataclasses.asdict(report) for report in reports]
    print(json.dumps({"schema": 1, "packages": documents, "names": names}, indent=2))


def lines(report: PackageReport) -> Iterator[str]:
    """Yield the lines that a person reads; byte counts are exact."""
    yield f"package {report.package}"
    yield f"  digest {report.digest or 'not computed yet: give --digest'}"
    yield f"  specification {report.spec_version}, needs {report.minimum_os}"
    yield (
        f"  {report.package_bytes:,} bytes: program {report.specification_bytes:,}, "
        f"weights {report.weights_bytes:,}"
    )
    bits = "no weights" if report.bits_per_weight is None else f"{report.bits_per_weight:g} bits"
    yield f"  {report.parameters:,} parameters, {bits} per weight with tables and scales"
    for dtype, found in report.precisions.items():
        yield f"  weights in {dtype}: {found.size_bytes:,} bytes in {found.tensors} tensors"
    for function in report.functions:
        mark = " (default)" if function.name == report.default_function else ""
        yield f"  function {function.name}{mark}, opset {function.opset}"
        yield from (f"    {line}" for line in _function_lines(function))


def _function_lines(function: FunctionReport) -> Iterator[str]:
    yield from (f"input {_feature(feature)}" for feature in function.inputs)
    yield from (f"output {_feature(feature)}" for feature in function.outputs)
    for state in function.states:
        yield (
            f"state {state.name} {state.dtype} {list(state.shape)}, {state.size_bytes:,} bytes, "
            f"{state.reads} reads, {state.writes} writes"
        )
    found = function.architecture
    yield f"KV cache: {found.kv_bytes:,} bytes, {found.kv_bytes_per_token:,} per token"
    yield (
        f"decoder: layers {_known(found.layers)}, kv heads {_known(found.kv_heads)}, "
        f"head dim {_known(found.head_dim)}, query heads {_known(found.query_heads)}, "
        f"hidden {_known(function.hidden)}, vocabulary {_known(function.vocabulary)}, "
        f"maximum length {_known(found.maximum_length)}"
    )
    inner = ", ".join(f"{count} x {name}" for name, count in function.inner_layers.items())
    yield (
        f"precision: first layer {function.first_layer or 'not in this package'}, "
        f"inner {inner or 'none'}, last layer {function.last_layer or 'not in this package'}"
    )
    yield f"operations {function.operations}, activations {function.activations_bytes:,} bytes"


def _feature(feature: Feature) -> str:
    shape = f"{feature.name} {feature.type.dtype} {list(feature.type.shape)}"
    if feature.enumerated:
        return f"{shape}, {len(feature.enumerated)} enumerated shapes"
    if feature.is_flexible:
        bounds = ", ".join(f"{least}..{most or ''}" for least, most in feature.ranges)
        return f"{shape}, each axis {bounds}"
    return shape


def _known(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
