"""usbmuxd: which phones are attached, their pair records, and connections to their ports.

Speaks the plist version of the protocol (1), as both pymobiledevice3 and libusbmuxd do. A header
is four little-endian words: total length, version, message type, tag; replies echo the tag.
"""

from __future__ import annotations

import asyncio
import plistlib
import socket
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from orchestrator.virtual.wire import Plist, ProtocolError, Stream, parse_plist

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.virtual.pki import Pki
    from orchestrator.virtual.wire import Endpoint

_HEADER: Final = struct.Struct("<IIII")
_VERSION: Final = 1
_PLIST_MESSAGE: Final = 8
_MAX_REQUEST_BYTES: Final = 1 << 20
_PRODUCT_ID: Final = 0x12A8  # USB product id of iPhones
_USB_SPEED: Final = 480_000_000


class MuxResult(IntEnum):
    """`Number` of a Result message."""

    OK = 0
    BAD_COMMAND = 1
    BAD_DEVICE = 2
    REFUSED = 3
    BAD_VERSION = 6


class AttachedPhone(Protocol):
    """What usbmuxd needs from a phone."""

    @property
    def udid(self) -> str:
        """The phone's UDID."""

    @property
    def wifi_address(self) -> str:
        """Stands in the pair record."""

    def endpoint(self, port: int) -> Endpoint | None:
        """Return what listens on a device port, or None."""

    async def serve(self, endpoint: Endpoint, stream: Stream) -> None:
        """Serve one connection until it ends."""

    def drop_connections(self) -> None:
        """End every connection at once."""


class PairRecords:
    """The host's pair records, kept as usbmuxd keeps them: one plist per UDID, and never parsed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder

    def read(self, record_id: object) -> bytes | None:
        """Return the stored bytes, or None."""
        path = self._path(record_id)
        return path.read_bytes() if path and path.exists() else None

    def save(self, record_id: object, data: object) -> bool:
        """Store bytes; False if the request makes no sense."""
        path = self._path(record_id)
        if path is None or not isinstance(data, bytes):
            return False
        path.touch(mode=0o600)
        path.write_bytes(data)
        return True

    def delete(self, record_id: object) -> bool:
        """Remove a record; False if there is none."""
        path = self._path(record_id)
        if path is None or not path.exists():
            return False
        path.unlink()
        return True

    def _path(self, record_id: object) -> Path | None:
        # The id comes from the client and becomes a file name.
        if not isinstance(record_id, str) or not record_id.replace("-", "").isalnum():
            return None
        return self._folder / f"{record_id}.plist"


class Usbmuxd:
    """The daemon: hand `serve` to a listener."""

    def __init__(self, pki: Pki, records: PairRecords) -> None:
        self._pki, self._records = pki, records
        self._phones: dict[int, AttachedPhone] = {}
        self._wireless: set[int] = set()  # device ids of phones seen over Wi-Fi
        self._answering = asyncio.Event()
        self._answering.set()
        self._listeners: set[Stream] = set()
        self._next_id = 1
        self._answers: dict[str, Callable[[Plist], Plist]] = {
            "ListDevices": self._list_devices,
            "ListListeners": lambda _: {"ListenerList": []},
            "ReadBUID": lambda _: {"BUID": pki.keys.system_buid},
            "ReadPairRecord": self._read_record,
            "SavePairRecord": self._save_record,
            "DeletePairRecord": self._delete_record,
        }

    def attach(self, phone: AttachedPhone, *, wireless: bool = False) -> None:
        """Plug a phone in, or see it on Wi-Fi: it gets a new device id; listeners hear of it."""
        device_id, self._next_id = self._next_id, self._next_id + 1
        self._phones[device_id] = phone
        if wireless:
            self._wireless.add(device_id)
        if self._records.read(phone.udid) is None:
            record = self._pki.pair_record(phone.wifi_address)
            self._records.save(phone.udid, plistlib.dumps(record))
        self._broadcast(self._attached(device_id))

    def detach(self, phone: AttachedPhone) -> None:
        """Unplug a phone: its connections break, and listeners hear of it."""
        for device_id in [key for key, value in self._phones.items() if value is phone]:
            self._forget(device_id)
        phone.drop_connections()

    def lose_wireless(self, phone: AttachedPhone) -> None:
        """See a phone on Wi-Fi no more; the cable stays."""
        for device_id in [each for each in self._wireless if self._phones[each] is phone]:
            self._forget(device_id)

    def is_attached(self, phone: AttachedPhone) -> bool:
        """Whether a phone is listed."""
        return any(each is phone for each in self._phones.values())

    def _forget(self, device_id: int) -> None:
        del self._phones[device_id]
        self._wireless.discard(device_id)
        self._broadcast({"MessageType": "Detached", "DeviceID": device_id})

    def hang(self) -> None:
        """Take connections and requests, and answer none; what is connected goes on."""
        self._answering.clear()

    def recover(self) -> None:
        """Answer again, what waits first."""
        self._answering.set()

    async def serve(self, stream: Stream) -> None:
        """Answer one client until it leaves or its connection becomes a phone's."""
        try:
            while True:
                tag, request = await _read_request(stream)
                await self._answering.wait()
                kind = request.get("MessageType")
                if kind == "Connect":
                    if await self._connect(stream, tag, request):
                        return
                elif kind == "Listen":
                    await self._listen(stream, tag)
                else:
                    answer = self._answers.get(str(kind), _bad_command)
                    await stream.send(_frame(tag, answer(request)))
        finally:
            self._listeners.discard(stream)

    async def _connect(self, stream: Stream, tag: int, request: Plist) -> bool:
        """Turn the connection into a phone's; False if that was refused."""
        phone = self._phones.get(_integer(request, "DeviceID"))
        if phone is None:
            await stream.send(_result(tag, MuxResult.BAD_DEVICE))
            return False
        # Clients send the port in network order inside a host-order number.
        endpoint = phone.endpoint(socket.ntohs(_integer(request, "PortNumber") & 0xFFFF))
        if endpoint is None:
            await stream.send(_result(tag, MuxResult.REFUSED))
            return False
        if endpoint.tls:
            stream.expect_tls()
        await stream.send(_result(tag, MuxResult.OK))
        await phone.serve(endpoint, stream)
        return True

    async def _listen(self, stream: Stream, tag: int) -> None:
        await stream.send(_result(tag, MuxResult.OK))
        for device_id in self._phones:
            stream.writer.write(_frame(0, self._attached(device_id)))
        self._listeners.add(stream)

    def _broadcast(self, message: Plist) -> None:
        for stream in self._listeners:
            stream.writer.write(_frame(0, message))

    def _list_devices(self, _request: Plist) -> Plist:
        return {"DeviceList": [self._attached(device_id) for device_id in self._phones]}

    def _attached(self, device_id: int) -> Plist:
        phone = self._phones[device_id]
        link = _wifi_link(phone) if device_id in self._wireless else _usb_link(phone, device_id)
        return {
            "MessageType": "Attached",
            "DeviceID": device_id,
            "Properties": {
                **link,
                "DeviceID": device_id,
                "SerialNumber": phone.udid,
                "UDID": phone.udid,
            },
        }

    def _read_record(self, request: Plist) -> Plist:
        record = self._records.read(request.get("PairRecordID"))
        return {"PairRecordData": record} if record else _result_body(MuxResult.BAD_DEVICE)

    def _save_record(self, request: Plist) -> Plist:
        saved = self._records.save(request.get("PairRecordID"), request.get("PairRecordData"))
        return _result_body(MuxResult.OK if saved else MuxResult.BAD_COMMAND)

    def _delete_record(self, request: Plist) -> Plist:
        deleted = self._records.delete(request.get("PairRecordID"))
        return _result_body(MuxResult.OK if deleted else MuxResult.BAD_DEVICE)


async def _read_request(stream: Stream) -> tuple[int, Plist]:
    length, version, message, tag = _HEADER.unpack(await stream.reader.readexactly(_HEADER.size))
    if not _HEADER.size <= length <= _MAX_REQUEST_BYTES:
        raise ProtocolError(f"a request of {length} bytes")
    body = await stream.reader.readexactly(length - _HEADER.size)
    if version != _VERSION:
        # libusbmuxd asks in the binary version first if it must; this answer makes it use plists.
        await stream.send(_result(tag, MuxResult.BAD_VERSION))
        raise ProtocolError(f"protocol version {version}")
    if message != _PLIST_MESSAGE:
        await stream.send(_result(tag, MuxResult.BAD_COMMAND))
        raise ProtocolError(f"message type {message}")
    return tag, parse_plist(body)


def _usb_link(phone: AttachedPhone, device_id: int) -> Plist:
    return {
        "ConnectionType": "USB",
        "ConnectionSpeed": _USB_SPEED,
        "LocationID": device_id << 16,
        "ProductID": _PRODUCT_ID,
        "USBSerialNumber": phone.udid.replace("-", ""),
    }


def _wifi_link(phone: AttachedPhone) -> Plist:
    address = bytes([16, socket.AF_INET, 0, 0, 127, 0, 0, 1])  # Darwin's sockaddr_in
    return {
        "ConnectionType": "Network",
        "EscapedFullServiceName": f"{phone.wifi_address}@_apple-mobdev2._tcp.local.",
        "InterfaceIndex": 1,
        "NetworkAddress": address.ljust(128, b"\0"),
    }


def _integer(request: Plist, key: str) -> int:
    value: Any = request.get(key)
    return value if isinstance(value, int) else -1


def _bad_command(_request: Plist) -> Plist:
    return _result_body(MuxResult.BAD_COMMAND)


def _result_body(number: MuxResult) -> Plist:
    return {"MessageType": "Result", "Number": int(number)}


def _result(tag: int, number: MuxResult) -> bytes:
    return _frame(tag, _result_body(number))


def _frame(tag: int, message: Plist) -> bytes:
    body = plistlib.dumps(message)
    return _HEADER.pack(_HEADER.size + len(body), _VERSION, _PLIST_MESSAGE, tag) + body
