"""The AFC service: reads requests, answers each with data or a status."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.services.afc.codec import (
    Operation,
    RefusedError,
    Reply,
    Status,
    encode_reply,
    read_packet,
    status_of,
)
from orchestrator.virtual.services.afc.confinement import Confinement
from orchestrator.virtual.services.afc.files import OpenFiles
from orchestrator.virtual.services.afc.lies import LyingPaths
from orchestrator.virtual.services.afc.paths import PathOperations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.virtual.services.afc.codec import Packet
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Stream

_BLOCK_BYTES: Final = 4096


class AfcService:
    """Serves one folder. Each connection has its own open files."""

    def __init__(
        self, root: Path, product_type: str, settings: Settings, *, visible: str | None = None
    ) -> None:
        self._root, self._visible = root, visible
        self._product_type, self._settings = product_type, settings

    async def serve(self, stream: Stream) -> None:
        """Answer requests until the client leaves."""
        confinement = Confinement.of(self._root, self._visible)
        files = OpenFiles(confinement, self._settings.storage)
        operations: dict[int, Callable[[bytes], Reply]] = {
            **PathOperations(confinement, self._settings.clock).operations,
            **files.operations,
            Operation.GET_DEVICE_INFO: self._device_info,
        }
        if self._settings.afc_lies is not None:
            operations = LyingPaths(self._settings.afc_lies, operations).operations
        try:
            while True:
                packet = await read_packet(stream.reader)
                reply = answer(packet, operations)
                await stream.send(encode_reply(packet.number, reply))
        finally:
            files.close_all()

    def _device_info(self, _body: bytes) -> Reply:
        return Reply.pairs(
            {
                "Model": self._product_type,
                "FSTotalBytes": self._settings.storage.capacity_bytes,
                "FSFreeBytes": self._settings.storage.free_bytes,
                "FSBlockSize": _BLOCK_BYTES,
            }
        )


def answer(packet: Packet, operations: dict[int, Callable[[bytes], Reply]]) -> Reply:
    """Return the answer to one request; what fails becomes a status, never an exception."""
    operation = operations.get(packet.operation)
    if operation is None:
        return Reply.status(Status.OPERATION_NOT_SUPPORTED)
    try:
        return operation(packet.body)
    except RefusedError as refusal:
        return Reply.status(refusal.status)
    except OSError as error:
        return Reply.status(status_of(error))
    except (struct.error, ValueError, OverflowError):
        # a body too short for its fields, or a NUL or an absurd number where none may be
        return Reply.status(Status.INVALID_ARGUMENT)
