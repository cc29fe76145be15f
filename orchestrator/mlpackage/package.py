"""Opens an `.mlpackage`: manifest, program, weight files; nothing in it is trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.description import decode_model
from orchestrator.mlpackage.errors import FormatError, PackageError
from orchestrator.mlpackage.weights import BlobRecord, WeightFile, read_weight_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from orchestrator.mlpackage.graph import BlobRef, Model, Value

_MANIFEST: Final = "Manifest.json"
_MANIFEST_LIMIT_BYTES: Final = 1024**2
# Weights are elsewhere: the program of a 1.1 B parameter model has half a megabyte.
_SPECIFICATION_LIMIT_BYTES: Final = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was read; every constant of its program is known to lie in its files."""

    path: Path
    specification_path: Path  # `model.mlmodel`
    specification_bytes: int
    package_bytes: int  # all files
    model: Model
    weights: Mapping[str, WeightFile]  # by the name that the program uses

    def record(self, blob: BlobRef) -> BlobRecord:
        """Return the record of a constant of this package's program."""
        return self.weights[blob.file].records[blob.offset]

    def read(self, blob: BlobRef) -> bytes:
        """Return the packed bytes of a constant of this package's program."""
        return self.weights[blob.file].read(blob.offset)


def find_packages(path: Path) -> tuple[Path, ...]:
    """Return the package at `path`, or those that lie directly in the folder `path`, sorted.

    Raises:
        PackageError: If there is none.
    """
    if (path / _MANIFEST).is_file() or path.suffix == ".mlpackage" or not path.is_dir():
        return (path,)
    if path.suffix == ".mlmodelc":
        raise PackageError(path, "a compiled model", remedy="Give the .mlpackage it was made from")
    found = sorted(child for child in path.iterdir() if child.suffix == ".mlpackage")
    if not found:
        raise PackageError(path, f"not a package: no {_MANIFEST} and no .mlpackage in it")
    return tuple(found)


def read_package(path: Path) -> Package:
    """Read a package without its tensors' bytes.

    Raises:
        PackageError: If it is no package, or a file of it is missing, cut or inconsistent. The
            message names the file and the reason.
    """
    specification_path = _specification_path(path)
    specification = _read_bounded(specification_path, _SPECIFICATION_LIMIT_BYTES)
    try:
        model = decode_model(specification)
    except FormatError as error:
        raise PackageError(specification_path, str(error)) from error
    weights = _read_weights(path, specification_path, model)
    size_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Package(path, specification_path, len(specification), size_bytes, model, weights)


def require_state(packages: Sequence[Package]) -> None:
    """Refuse a model of which no package has a state.

    Raises:
        PackageError: If no function of any package declares one.
    """
    if not any(f.states for package in packages for f in package.model.functions.values()):
        raise PackageError(
            packages[0].specification_path,
            "a stateless model: no function declares a state",
            remedy="`fleet model lint` says what that costs",
        )


def constants(model: Model) -> Iterator[tuple[str, Value]]:
    """Yield every constant of a program that lies in a weight file, with a name for messages."""
    for function in model.functions.values():
        for operation in function.block.walk():
            name = operation.outputs[0].name if operation.outputs else operation.kind
            for value in operation.attributes.values():
                if value.blob is not None:
                    yield name, value
            for arguments in operation.inputs.values():
                for argument in arguments:
                    if not isinstance(argument, str) and argument.blob is not None:
                        yield name, argument


def _specification_path(path: Path) -> Path:
    if path.is_file():
        raise PackageError(path, "a file, not an .mlpackage folder", remedy=_single_file(path))
    if not path.is_dir():
        raise PackageError(path, "no such package")
    manifest_path = path / _MANIFEST
    if not manifest_path.is_file():
        raise PackageError(path, f"not a package: no {_MANIFEST}")
    try:
        manifest = json.loads(_read_bounded(manifest_path, _MANIFEST_LIMIT_BYTES))
        relative = manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PackageError(manifest_path, "names no root model") from None
    return _inside(path, path / "Data", relative, manifest_path)


def _single_file(path: Path) -> str:
    """Return what to do about a bare specification, which is how neural networks come."""
    try:
        decode_model(_read_bounded(path, _SPECIFICATION_LIMIT_BYTES))
    except FormatError as error:
        return f"It holds {error}" if str(error).endswith("not an ML program") else ""
    return "Save the model as an .mlpackage"


def _inside(package: Path, folder: Path, relative: object, named_in: Path) -> Path:
    """Return a file that a package names, if it lies in the package."""
    if not isinstance(relative, str) or not relative or "\0" in relative:
        raise PackageError(named_in, "names a file without a name")
    if PurePosixPath(relative).is_absolute() or ".." in PurePosixPath(relative).parts:
        raise PackageError(named_in, f"names a file outside the package: {relative[:80]}")
    file = folder / relative
    try:
        resolved = file.resolve(strict=True)
    except (OSError, RuntimeError):
        raise PackageError(file, "missing") from None
    if not resolved.is_file():
        raise PackageError(file, "not a file")
    if not resolved.is_relative_to(package.resolve()):
        raise PackageError(file, "a link that leaves the package")
    return file


def _read_bounded(file: Path, limit_bytes: int) -> bytes:
    try:
        with file.open("rb") as stream:
            content = stream.read(limit_bytes + 1)
    except OSError as error:
        raise PackageError(file, f"cannot be read: {error.strerror}") from error
    if len(content) > limit_bytes:
        raise PackageError(file, f"larger than {limit_bytes} bytes")
    return content


def _read_weights(package: Path, specification_path: Path, model: Model) -> dict[str, WeightFile]:
    weights: dict[str, WeightFile] = {}
    for name, value in constants(model):
        blob = value.blob
        if blob is None:
            continue
        if blob.file not in weights:
            file = _inside(package, specification_path.parent, blob.file, specification_path)
            weights[blob.file] = _weight_file(file)
        fault = _blob_fault(weights[blob.file], blob, value)
        if fault:
            raise PackageError(weights[blob.file].path, f"{name[:80]}: {fault}")
    return weights


def _weight_file(file: Path) -> WeightFile:
    try:
        return read_weight_file(file)
    except FormatError as error:
        raise PackageError(file, str(error)) from error
    except OSError as error:
        raise PackageError(file, f"cannot be read: {error.strerror}") from error


def _blob_fault(weights: WeightFile, blob: BlobRef, value: Value) -> str:
    """Return why a constant cannot lie where it says, or an empty text."""
    record = weights.records.get(blob.offset)
    if record is None:
        return f"no tensor at offset {blob.offset} of {weights.size_bytes} bytes"
    expected_bytes = value.type.size_bytes
    if record.dtype != value.type.dtype:
        return f"{value.type.dtype} in the program, {record.dtype} in the weight file"
    if expected_bytes != record.size_bytes:
        return f"{expected_bytes} bytes in the program, {record.size_bytes} in the weight file"
    return ""
