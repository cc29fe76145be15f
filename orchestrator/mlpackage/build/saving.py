"""Converts functions, saves the package, and takes everything out that changes between runs."""

from __future__ import annotations

import json
import shutil
import uuid
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.coreml import unclosed_scratch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil, MilObject

SPECIFICATION_VERSION: Final = 9  # iOS 18: the first with states
# Of a converter run, not of a model: date, and the dialect it came from.
_VOLATILE_METADATA: Final = (
    "com.github.apple.coremltools.conversion_date",
    "com.github.apple.coremltools.source_dialect",
)
# The default pipeline runs 90 passes over graphs from other frameworks, validates the whole graph
# after each and copies every constant: 12 s of a large build, and nothing to do in a graph that
# was written op by op.
_PASSES: Final = (
    "common::noop_elimination",
    "common::sanitize_input_output_names",
    "common::dedup_op_and_var_names",
    "common::topological_reorder",
    "common::dead_code_elimination",
)


def write_package(
    mil: Mil, functions: Mapping[str, MilObject], package: Path, metadata: Mapping[str, str]
) -> None:
    """Convert functions into a package that has the same bytes whenever it is made.

    Args:
        mil: What `coreml.load` returned.
        functions: The functions by name. A single one is called `main` in the package.
        package: The `.mlpackage`; one that exists is replaced.
        metadata: User-defined entries.

    Raises:
        UsageError: If something else than a package is in the way.
    """
    program = mil.Program()
    several = len(functions) > 1
    for name, function in functions.items():
        program.add_function(name if several else "main", function)
    if several:
        program.default_function_name = next(iter(functions))
        program.export_as_multifunction = True
    make_way(package)
    with unclosed_scratch():
        mil.mil_convert(
            program,
            convert_to="mlprogram",
            convert_from="milinternal",
            specification_version=SPECIFICATION_VERSION,
            compute_units=mil.ct.ComputeUnit.CPU_ONLY,
            skip_model_load=True,
            pass_pipeline=mil.ct.PassPipeline(pass_names=list(_PASSES), pipeline_name="fleet"),
            package_dir=str(package),
        )
    make_reproducible(mil, package, metadata)


def make_way(package: Path) -> None:
    """Remove a package that is to be replaced.

    Raises:
        UsageError: If something else than a package is in the way.
    """
    if package.exists():
        if package.suffix != ".mlpackage" or not package.is_dir():
            raise UsageError(f"{package} exists and is no .mlpackage")
        shutil.rmtree(package)


def make_reproducible(mil: Mil, package: Path, metadata: Mapping[str, str]) -> None:
    """Write manifest and program of a saved package in one fixed form, with metadata added.

    Weight files are equal between runs; the order of protobuf maps, the random ids of the
    manifest and the conversion date are not.
    """
    manifest_path = package / "Manifest.json"
    manifest = json.loads(manifest_path.read_text())
    entries = manifest["itemInfoEntries"]
    fixed = {name: str(uuid.uuid5(uuid.NAMESPACE_URL, entries[name]["path"])) for name in entries}
    root = manifest["rootModelIdentifier"]
    specification_path = package / "Data" / entries[root]["path"]
    manifest["itemInfoEntries"] = {fixed[name]: entry for name, entry in entries.items()}
    manifest["rootModelIdentifier"] = fixed[root]
    manifest_path.write_text(json.dumps(manifest, indent=4, sort_keys=True) + "\n")
    specification = mil.ct.proto.Model_pb2.Model()
    specification.ParseFromString(specification_path.read_bytes())
    user_defined = specification.description.metadata.userDefined
    for key in _VOLATILE_METADATA:
        user_defined.pop(key, None)
    for key, text in metadata.items():
        user_defined[key] = text
    specification_path.write_bytes(specification.SerializeToString(deterministic=True))
    specification_path.chmod(0o644)
