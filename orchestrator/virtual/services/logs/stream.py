"""com.apple.syslog_relay and com.apple.os_trace_relay."""

from __future__ import annotations

import math
import plistlib
import struct
from itertools import cycle
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.virtual.kernel import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.virtual.machine import Machine
    from orchestrator.virtual.wire import Plist, Stream

CHATTER_PERIOD_S: Final = 1.0

# What daemons of an idle phone say.
_CHATTER: Final = (
    LogLine(45, "wifid", "WiFiPolicy", "WiFiManager: RSSI -51, roam is not needed"),
    LogLine(70, "locationd", "CoreLocation", "@WifiFlow, nearby, scan is not needed"),
    LogLine(66, "backboardd", "BackBoardServices", "ambient light: 118 lux"),
    LogLine(48, "powerd", "powerd", "assertions: none prevents idle sleep"),
)
_MAX_TEXT_BYTES: Final = 60_000  # the record's length field has 16 bits
_ALL_PIDS: Final = (-1, 0xFFFFFFFF)
_TICKS_PER_S: Final = 24_000_000  # mach_absolute_time on iPhones
_SUCCESS: Final = {"Status": "RequestSuccessful"}

# pid, unique pid, image uuid of the process, seconds, microseconds
_RECORD_HEAD: Final = struct.Struct("<9xIQ16s18xI4xI")
# level, mach time, thread, image uuid of the sender, sizes: image, text, subsystem, category
_RECORD_TAIL: Final = struct.Struct("<xB6xQQ16sHH6xII4x")


class SyslogRelay:
    """Text lines, each ended by newline and NUL.

    A phone is never silent: something is said at once, and about every second.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def serve(self, stream: Stream) -> None:
        """Stream the log until the client leaves."""
        await _follow(stream, self._machine, lambda _: True, self._encode, chatter=cycle(_CHATTER))

    def _encode(self, line: LogLine) -> bytes:
        when = f"{self._machine.settings.clock.now():%b %e %H:%M:%S}"
        name = self._machine.settings.name.replace(" ", "-")
        return f"{when} {name} {line.process}[{line.pid}] <Notice>: {line.text}\n\0".encode()


class OsTraceRelay:
    """Binary records, and the list of processes."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def serve(self, stream: Stream) -> None:
        """Answer one request; a stream of records goes on until the client leaves."""
        request = await stream.read_plist()
        kind = request.get("Request")
        if kind == "PidList":
            await stream.send(b"\1")
            await stream.send_plist({**_SUCCESS, "Payload": self._pids()})
        elif kind == "StartActivity":
            await stream.send(_acknowledgement())
            pid = request.get("Pid", -1)
            everything = pid in _ALL_PIDS
            await _follow(
                stream,
                self._machine,
                lambda line: everything or line.pid == pid,
                self._framed_record,
                chatter=cycle(_CHATTER) if everything else None,
            )
        else:
            await stream.send_plist({"Status": "RequestFailed"})

    def _pids(self) -> Plist:
        return {str(p.pid): {"ProcessName": p.name} for p in self._machine.processes()}

    def _framed_record(self, line: LogLine) -> bytes:
        record = encode_record(line, self._machine.settings.clock.time_ns())
        return b"\2" + struct.pack("<I", len(record)) + record


async def _follow(
    stream: Stream,
    machine: Machine,
    wanted: Callable[[LogLine], bool],
    encode: Callable[[LogLine], bytes],
    *,
    chatter: Iterator[LogLine] | None,
) -> None:
    """Send lines until the client leaves; with chatter one at once and one in a quiet second."""

    async def send_lines() -> None:
        line = next(chatter) if chatter else None
        while True:
            if line is not None:
                await stream.send(encode(line))
            line = next(chatter) if chatter else None
            with anyio.move_on_after(CHATTER_PERIOD_S if chatter else math.inf):
                line = await subscription.next()

    with machine.log.subscribe(wanted) as subscription:
        async with anyio.create_task_group() as group:
            group.start_soon(send_lines)
            await stream.until_closed()
            group.cancel_scope.cancel()


def _acknowledgement() -> bytes:
    """Return the answer to StartActivity: the size of the length, the length, the plist."""
    body = plistlib.dumps(_SUCCESS)
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "little")
    return struct.pack("<I", len(length)) + length + body


def encode_record(line: LogLine, now_ns: int) -> bytes:
    """Return one record of os_trace_relay.

    Args:
        line: What was logged.
        now_ns: Unix time in nanoseconds.
    """
    program = f"/private/var/containers/Bundle/{line.process}".encode() + b"\0"
    image = line.image.encode() + b"\0"
    text = line.text.encode("utf-8", "replace")[:_MAX_TEXT_BYTES] + b"\0"
    seconds, rest_ns = divmod(now_ns, 10**9)
    head = _RECORD_HEAD.pack(line.pid, line.pid, bytes(16), seconds, rest_ns // 1000)
    ticks = now_ns * _TICKS_PER_S // 10**9 % (1 << 64)
    tail = _RECORD_TAIL.pack(0, ticks, 1, bytes(16), len(image), len(text), 0, 0)
    return head + tail + program + image + text
