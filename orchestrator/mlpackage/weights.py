"""The record table of a weight file: where each tensor lies, without reading the tensors.

A file is a 64-byte header `<u32 count, u32 version>`, then per tensor a 64-byte record
`<u32 0xDEADBEEF, u32 dtype, u64 size, u64 offset of the data, u64 padding bits>` and its data, both
on 64-byte boundaries. Sub-byte elements are packed from the lowest bit.

Source: github.com/apple/coremltools mlmodel/src/MILBlob/Blob/StorageFormat.hpp
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ALIGNMENT_BYTES: Final = 64

_HEADER: Final = struct.Struct("<II")
_RECORD: Final = struct.Struct("<IIQQQ")
_SENTINEL: Final = 0xDEADBEEF
_VERSION: Final = 2
# A model of 3 B parameters has about 500; every record costs a system call.
_RECORD_LIMIT: Final = 200_000
_DTYPES: Final = {
    1: "fp16",
    2: "fp32",
    3: "uint8",
    4: "int8",
    5: "bf16",
    6: "int16",
    7: "uint16",
    8: "int4",
    9: "uint1",
    10: "uint2",
    11: "uint4",
    12: "uint3",
    13: "uint6",
    14: "int32",
    15: "uint32",
    16: "fp8e4m3fn",
    17: "fp8e5m2",
}


@dataclass(frozen=True, slots=True)
class BlobRecord:
    """One tensor in a weight file."""

    dtype: str
    size_bytes: int
    data_offset: int


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A weight file; `records` is keyed by the offset that a program refers to."""

    path: Path
    size_bytes: int
    records: Mapping[int, BlobRecord]

    def read(self, offset: int) -> bytes:
        """Return the bytes of the tensor whose record lies at `offset`.

        Raises:
            FormatError: If no record lies there.
        """
        record = self.records.get(offset)
        if record is None:
            raise FormatError(f"no tensor at offset {offset}")
        with self.path.open("rb") as file:
            file.seek(record.data_offset)
            return file.read(record.size_bytes)


def read_weight_file(path: Path) -> WeightFile:
    """Read the record table of a weight file.

    Raises:
        FormatError: If the file is cut or its table is inconsistent.
        OSError: If the file cannot be read.
    """
    with path.open("rb") as file:
        descriptor = file.fileno()
        size_bytes = os.fstat(descriptor).st_size
        head = os.pread(descriptor, _HEADER.size, 0)
        if size_bytes < ALIGNMENT_BYTES:
            raise FormatError(f"{size_bytes} bytes, too short for a weight file")
        count, version = _HEADER.unpack(head)
        if version != _VERSION:
            raise FormatError(f"version {version} of the weight format; {_VERSION} is known")
        if count > min(_RECORD_LIMIT, size_bytes // ALIGNMENT_BYTES):
            raise FormatError(f"claims {count} tensors in {size_bytes} bytes")
        return WeightFile(path, size_bytes, _records(descriptor, count, size_bytes))


def _records(descriptor: int, count: int, file_bytes: int) -> dict[int, BlobRecord]:
    records: dict[int, BlobRecord] = {}
    offset = ALIGNMENT_BYTES
    for ordinal in range(1, count + 1):
        content = os.pread(descriptor, _RECORD.size, offset)
        if len(content) < _RECORD.size:
            raise FormatError(f"the file ends before tensor {ordinal} of {count}")
        sentinel, code, size_bytes, data_offset, _ = _RECORD.unpack(content)
        if sentinel != _SENTINEL:
            raise FormatError(f"no record of tensor {ordinal} at offset {offset}")
        if data_offset < offset + ALIGNMENT_BYTES or data_offset + size_bytes > file_bytes:
            raise FormatError(
                f"tensor {ordinal} of {count} lies at {data_offset} + {size_bytes} bytes, "
                f"the file has {file_bytes}"
            )
        records[offset] = BlobRecord(_DTYPES.get(code, f"type {code}"), size_bytes, data_offset)
        offset = -(-(data_offset + size_bytes) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return records
