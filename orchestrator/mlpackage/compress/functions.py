"""Takes the functions of a package apart: coremltools refuses to compress several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.coreml import Mil, MilObject
    from orchestrator.mlpackage.package import Package


def single_function(mil: Mil, package: Package, name: str) -> MilObject:
    """Return one function of a package as a model of its own, called `main`."""
    specification = mil.ct.proto.Model_pb2.Model()
    specification.ParseFromString(package.specification_path.read_bytes())
    program = specification.mlProgram.functions
    if len(program) > 1:
        _select(specification, name)
    weights = package.specification_path.parent / "weights"
    return mil.ct.models.MLModel(specification, weights_dir=str(weights), skip_model_load=True)


def _select(specification: MilObject, name: str) -> None:
    """Leave one function in a specification, and its description at the top."""
    program, description = specification.mlProgram.functions, specification.description
    chosen = type(program[name])()
    chosen.CopyFrom(program[name])
    for other in list(program):
        del program[other]
    program["main"].CopyFrom(chosen)
    described = next(entry for entry in description.functions if entry.name == name)
    for field in ("input", "output", "state"):
        features = getattr(description, field)
        del features[:]
        features.extend(getattr(described, field))
    del description.functions[:]
    description.ClearField("defaultFunctionName")
