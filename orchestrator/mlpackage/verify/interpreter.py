"""Executes one function of a saved package: weights, offsets, packing, states, operations.

Core ML does not run on Linux, and this is not about speed: it checks the artefact itself, the very
bytes that go to a phone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.mlpackage.errors import PackageError
from orchestrator.mlpackage.verify.errors import VerifyError, WrongGraphError
from orchestrator.mlpackage.verify.expand import expand
from orchestrator.mlpackage.verify.ops import OPERATIONS, Arguments
from orchestrator.mlpackage.verify.tensors import DTYPES, constant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.mlpackage.graph import Argument, Operation, Value
    from orchestrator.mlpackage.package import Package
    from orchestrator.mlpackage.verify.tensors import Array

# Dense copies of compressed weights are kept while all of them fit; else each use expands again.
_KEEP_BYTES: Final = 512 * 1024**2
_COMPRESSED: Final = "constexpr_"
_CONVERTER_SUFFIX: Final = re.compile("(_palettized|_quantized)$")


class Interpreter:
    """One function of a package, ready to predict."""

    def __init__(self, package: Package, function: str | None = None) -> None:
        name = function or package.model.default_function
        if name not in package.model.functions:
            raise PackageError(package.path, f"no function {name!r}")
        self.function = package.model.functions[name]
        self._package = package
        operations = self.function.block.operations
        self._compressed, self._constants = _constants(package, operations)
        self._weights = _weight_names(operations)
        self._steps = [
            operation
            for operation in operations
            if operation.kind != "const" and not operation.kind.startswith(_COMPRESSED)
        ]
        self._released = _last_uses(self._steps, set(self.function.block.outputs))
        sizes = (output.outputs[0].type.size_bytes or 0 for output in self._compressed.values())
        self._keeps = sum(sizes) <= _KEEP_BYTES
        self._expanded: dict[str, Array] = {}

    @property
    def path(self) -> Path:
        """The package."""
        return self._package.path

    def make_state(self) -> dict[str, Array]:
        """Return the function's states, zeroed, as a new `MLState` is."""
        return {
            state.name: np.zeros([length or 0 for length in state.type.shape], np.float16)
            for state in self.function.states
        }

    def predict(self, inputs: Mapping[str, Array], state: dict[str, Array]) -> dict[str, Array]:
        """Run the function once.

        Args:
            inputs: Every declared input.
            state: From `make_state`; changed in place.

        Returns:
            The declared outputs.

        Raises:
            VerifyError: If the program has an operation that is not known here.
            WrongGraphError: If an operation fails, or inputs and outputs are not as declared.
        """
        declared = {feature.name for feature in self.function.inputs}
        if declared != set(inputs):
            raise WrongGraphError(f"{self.path}: inputs {sorted(declared)}, not {sorted(inputs)}")
        values: dict[str, Any] = dict(inputs)
        for index, operation in enumerate(self._steps):
            self._run(operation, values, state)
            for name in self._released[index]:
                values.pop(name, None)
        outputs = self.function.block.outputs
        if not set(outputs) <= set(values):
            raise WrongGraphError(f"{self.path}: nothing makes one of {sorted(outputs)}")
        return {name: values[name] for name in outputs}

    def weight(self, name: str) -> Array:
        """Return the dense values of a constant of the program, compressed or not."""
        found = self._lookup(self._weights.get(name, name))
        if found is None:
            raise VerifyError(f"{self.path}: no constant {name!r}")
        return np.asarray(found)

    def weight_names(self) -> tuple[str, ...]:
        """Return the names of all weights, without what a converter adds to compressed ones."""
        return tuple(self._weights)

    def _run(self, operation: Operation, values: dict[str, Any], state: dict[str, Array]) -> None:
        try:
            if operation.kind == "write_state":
                data = np.array(self._bound(operation.inputs["data"][0], values))
                state[_state_name(operation)] = data
                return
            if operation.kind == "read_state":
                results: list[Any] = [state[_state_name(operation)]]
            else:
                results = self._results(operation, values)
            for output, result in zip(operation.outputs, results, strict=True):
                dtype = DTYPES[output.type.dtype]
                values[output.name] = np.asarray(result).astype(dtype, copy=False)
        except (ValueError, IndexError, KeyError, TypeError, MemoryError) as error:
            made = [output.name for output in operation.outputs]
            raise WrongGraphError(
                f"{self.path}: operation {operation.kind} of {made}: {error}"
            ) from error

    def _results(self, operation: Operation, values: dict[str, Any]) -> list[Any]:
        if operation.kind not in OPERATIONS:
            raise VerifyError(f"{self.path}: no operation {operation.kind!r} is known")
        result = OPERATIONS[operation.kind](self._arguments(operation, values))
        return result if isinstance(result, list) else [result]

    def _arguments(self, operation: Operation, values: dict[str, Any]) -> Arguments:
        return Arguments(
            {
                name: [self._bound(argument, values) for argument in arguments]
                for name, arguments in operation.inputs.items()
            }
        )

    def _bound(self, argument: Argument, values: dict[str, Any]) -> Any:  # noqa: ANN401
        if not isinstance(argument, str):
            return constant(self._package, argument)
        if argument in values:
            return values[argument]
        found = self._lookup(argument)
        if found is None:
            raise WrongGraphError(f"{self.path}: nothing makes {argument!r}")
        return found

    def _lookup(self, name: str) -> Array | str | None:
        if name in self._constants:
            return self._constants[name]
        if name in self._expanded:
            return self._expanded[name]
        if name not in self._compressed:
            return None
        operation = self._compressed[name]
        parameters: dict[str, tuple[Argument, ...]] = dict(operation.inputs)
        attributes: Mapping[str, Value] = operation.attributes
        parameters |= {key: (value,) for key, value in attributes.items() if key != "name"}
        bound = {
            key: [self._bound(argument, {}) for argument in arguments]
            for key, arguments in parameters.items()
        }
        dense = expand(operation.kind, Arguments(bound))
        if self._keeps:
            self._expanded[name] = dense
        return dense


def _constants(
    package: Package, operations: tuple[Operation, ...]
) -> tuple[dict[str, Operation], dict[str, Array | str]]:
    """Return compressed constants as operations, and all others as values."""
    compressed: dict[str, Operation] = {}
    values: dict[str, Array | str] = {}
    for operation in operations:
        if operation.kind != "const" and not operation.kind.startswith(_COMPRESSED):
            continue
        empty = operation.kind == "const" and "val" not in operation.attributes
        if empty or not operation.outputs:
            raise WrongGraphError(f"{package.path}: a {operation.kind} without a value")
        name = operation.outputs[0].name
        if operation.kind == "const":
            values[name] = constant(package, operation.attributes["val"])
        else:
            compressed[name] = operation
    return compressed, values


def _weight_names(operations: tuple[Operation, ...]) -> dict[str, str]:
    """Return the tensor of each weight, by the name it had before it was compressed."""
    names: dict[str, str] = {}
    for operation in operations:
        name = operation.outputs[0].name if operation.outputs else ""
        if operation.kind.startswith(_COMPRESSED):
            names[_CONVERTER_SUFFIX.sub("", name)] = name
        elif operation.kind == "const" and operation.attributes["val"].blob is not None:
            names[name] = name
    return names


def _state_name(operation: Operation) -> str:
    return operation.input_name("input") or ""


def _last_uses(steps: list[Operation], outputs: set[str]) -> list[list[str]]:
    """Return per operation the tensors that nothing reads after it."""
    last: dict[str, int] = {}
    for index, operation in enumerate(steps):
        for arguments in operation.inputs.values():
            last |= {argument: index for argument in arguments if isinstance(argument, str)}
    released: list[list[str]] = [[] for _ in steps]
    for name, index in last.items():
        if name not in outputs:
            released[index].append(name)
    return released
