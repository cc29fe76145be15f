"""Constants of a program as NumPy arrays: from weight files or from the program itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.mlpackage.errors import FormatError
from orchestrator.mlpackage.graph import BITS
from orchestrator.mlpackage.immediate import literal
from orchestrator.mlpackage.verify.errors import VerifyError

if TYPE_CHECKING:
    from orchestrator.mlpackage.graph import BlobRef, TensorType, Value
    from orchestrator.mlpackage.package import Package

Array: TypeAlias = npt.NDArray[Any]

DTYPES: Final[dict[str, npt.DTypeLike]] = {
    "bool": np.bool_,
    "fp16": np.float16,
    "fp32": np.float32,
    "fp64": np.float64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
}
_NARROW_SIGNED: Final = {"int4": True, "uint4": False, "uint3": False, "uint2": False} | {
    "uint1": False,
    "uint6": False,
}


def constant(package: Package, value: Value) -> Array | str:
    """Return a constant; sub-byte integers come widened to 8 bits.

    Raises:
        VerifyError: If its type or size is not one that a program can hold.
    """
    if value.type.dtype == "string":
        return str(literal(value)[0]) if literal(value) else ""
    shape = _fixed_shape(value.type)
    try:
        if value.blob is not None:
            return _from_file(package, value.blob, value.type.dtype, shape)
        return _from_program(value, shape)
    except (FormatError, ValueError) as error:
        raise VerifyError(f"{package.path}: a constant of {value.type}: {error}") from error


def _from_file(package: Package, blob: BlobRef, dtype: str, shape: tuple[int, ...]) -> Array:
    record = package.record(blob)
    raw = np.memmap(
        package.weights[blob.file].path,
        np.uint8,
        "r",
        offset=record.data_offset,
        shape=(record.size_bytes,),
    )
    if dtype in DTYPES:
        return raw.view(DTYPES[dtype]).reshape(shape)
    return _widened(np.asarray(raw), dtype, shape)


def _from_program(value: Value, shape: tuple[int, ...]) -> Array:
    elements = literal(value)
    dtype = value.type.dtype
    if isinstance(elements, bytes):
        raw = np.frombuffer(elements, np.uint8)
        if dtype not in DTYPES:
            return _widened(raw, dtype, shape)
        flat: Array = raw.view(DTYPES[dtype])
    else:
        flat = np.array(elements, DTYPES[dtype])
    count = int(np.prod(shape))
    if flat.size == 1 < count:  # a splat: one element stands for all
        flat = np.repeat(flat, count)
    return flat.reshape(shape)


def _widened(raw: npt.NDArray[np.uint8], dtype: str, shape: tuple[int, ...]) -> Array:
    """Unpack sub-byte integers, packed from the lowest bit."""
    if dtype not in _NARROW_SIGNED:
        raise ValueError(f"no values of {dtype}")
    bits, count = BITS[dtype], int(np.prod(shape))
    if bits == 4:  # the common case, without eight bytes per bit
        values = np.empty(2 * raw.size, np.uint8)
        values[0::2], values[1::2] = raw & 0x0F, raw >> 4
    else:
        split = np.unpackbits(raw, bitorder="little")[: raw.size * 8 // bits * bits]
        weights = (1 << np.arange(bits)).astype(np.uint8)
        values = (split.reshape(-1, bits) * weights).sum(axis=1, dtype=np.uint8)
    values = values[:count].reshape(shape)
    if not _NARROW_SIGNED[dtype]:
        return values
    return np.where(values >> (bits - 1), values.astype(np.int8) - (1 << bits), values).astype(
        np.int8
    )


def _fixed_shape(kind: TensorType) -> tuple[int, ...]:
    if any(length is None for length in kind.shape):
        raise VerifyError(f"a constant of {kind} has no fixed shape")
    return tuple(length or 0 for length in kind.shape)
