"""The protocols of virtual phones as fuzz targets: whole messages, mutated, and bare noise."""

from __future__ import annotations

import io
import json
import plistlib
import struct
import zipfile
from typing import TYPE_CHECKING, Any

from orchestrator.virtual.coredevice.appservice import app_service
from orchestrator.virtual.dtx.catalog import instruments
from orchestrator.virtual.dtx.message import Message, MessageKind
from orchestrator.virtual.dtx.message import encode as encode_dtx
from orchestrator.virtual.dtx.nska import archive
from orchestrator.virtual.lockdown.daemon import LOCKDOWN_PORT
from orchestrator.virtual.tunnel.packet import Flags, Options, Packet, Segment, encode_packet
from orchestrator.virtual.wire import ProtocolError
from orchestrator.virtual.xpc.codec import MessageFlags, decode, encode, encode_message
from orchestrator.virtual.xpc.peer import Frame, FrameKind
from tests.fuzz.bench import bench
from tests.fuzz.driver import Target, mutated

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from orchestrator.virtual.wire import Service

NASTY_PATHS = (
    *(b"/", b"..", b"/../../../etc/passwd", b"//..//..//canary", b"/a/../../canary", b"."),
    *(b"/\xff\xfe", b"/" + b"x" * 5000, b"/DCIM/../../../canary", b"/way-out/canary", b"\0"),
    *(b"/PublicStaging/..\\..\\canary", b"/CANARY", b"~", b"/./././"),
)


def _framed(document: dict[str, Any]) -> bytes:
    body = plistlib.dumps(document)
    return struct.pack(">I", len(body)) + body


def _mux(document: dict[str, Any], tag: int) -> bytes:
    body = plistlib.dumps(document)
    return struct.pack("<IIII", 16 + len(body), 1, 8, tag) + body


def _afc(operation: int, body: bytes, number: int) -> bytes:
    whole = 40 + len(body)
    return struct.pack("<8sQQQQ", b"CFA6LPAA", whole, whole, number, operation) + body


def _dtx(channel: int, selector: str, *arguments: object) -> bytes:
    call = Message.dispatch(1, channel, selector, *arguments)
    return encode_dtx(
        Message(call.kind, 1, 0, channel, call.payload, call.arguments, wants_reply=True)
    )


MUX = [
    _mux({"MessageType": "ListDevices", "ProgName": "fuzz"}, 1),
    _mux({"MessageType": "ReadBUID"}, 2),
    _mux({"MessageType": "ReadPairRecord", "PairRecordID": "../../canary"}, 3),
    _mux({"MessageType": "SavePairRecord", "PairRecordID": "../canary", "PairRecordData": b"x"}, 4),
    _mux({"MessageType": "DeletePairRecord", "PairRecordID": "/canary"}, 5),
    _mux({"MessageType": "Connect", "DeviceID": 1, "PortNumber": 0x7EF2}, 6),
    _mux({"MessageType": "Listen"}, 7),
]

LOCKDOWN = [
    _framed({"Request": "QueryType"}),
    _framed({"Request": "GetValue", "Domain": "com.apple.mobile.battery", "Key": "HasBattery"}),
    _framed({"Request": "GetValue"}),
    _framed({"Request": "SetValue", "Key": "DeviceName", "Value": "x"}),
    _framed({"Request": "Pair", "PairRecord": {"HostID": "x", "HostCertificate": b"no"}}),
    _framed({"Request": "ValidatePair", "PairRecord": {"HostID": "x"}}),
    _framed({"Request": "StartSession", "HostID": "x", "SystemBUID": "y"}),
    _framed({"Request": "StartService", "Service": "com.apple.afc"}),
    _framed({"Request": "Unpair", "PairRecord": {"HostID": "x"}}),
    _framed({"Request": "Goodbye"}),
]

CALLS = [
    *(
        _dtx(
            0,
            "_requestChannelWithCode:identifier:",
            code,
            f"com.apple.instruments.server.services.{name}",
        )
        for code, name in enumerate(
            (
                "deviceinfo",
                "processcontrol",
                "sysmontap",
                "ConditionInducer",
                "mobilenotifications",
            ),
            1,
        )
    ),
    _dtx(1, "runningProcesses"),
    _dtx(1, "directoryListingForPath:", "/"),
    _dtx(1, "execnameForPid:", 34),
    _dtx(2, "sendSignal:toPid:", 9, 34),
    _dtx(
        2,
        "launchSuspendedProcessWithDevicePath:bundleIdentifier:environment:arguments:options:",
        "",
        "com.example.nope",
        {"A": "b"},
        ["x"],
        {"KillExisting": True},
    ),
    _dtx(3, "setConfig:", {"ur": 100, "procAttrs": ["pid", "name"]}),
    _dtx(3, "start"),
    _dtx(2, "startObservingPid:", ["no number"]),
    _dtx(2, "requestDisableMemoryLimitsForPid:", {"a": 1}),
    _dtx(1, "nameForUID:", ["no number"]),
    _dtx(3, "setConfig:", {"ur": "soon", "procAttrs": [1, [2]]}),
    _dtx(4, "enableConditionWithIdentifier:profileIdentifier:", "ThermalCondition", "ThermalFair"),
    encode_dtx(Message(MessageKind.DATA, 9, 0, 1, archive({"a": [1, 2.5, None]}))),
]

XPC = [
    encode({"a": [1, True, None, 2.5, b"x", "text"], "b": {"c": {"d": [[]]}}}),
    encode_message(MessageFlags.ALWAYS_SET, 1, {"MessageType": "Handshake"}),
    encode({"CoreDevice.featureIdentifier": "com.apple.coredevice.feature.listprocesses"}),
]


def _http2() -> list[bytes]:
    feature = "com.apple.coredevice.feature."
    requests = [
        {"CoreDevice.featureIdentifier": f"{feature}listprocesses", "CoreDevice.input": {}},
        {
            "CoreDevice.featureIdentifier": f"{feature}sendsignaltoprocess",
            "CoreDevice.input": {"process": {"processIdentifier": 34}, "signal": 9},
        },
        {"CoreDevice.featureIdentifier": f"{feature}launchapplication", "CoreDevice.input": {}},
    ]
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    opening = preface + b"".join(
        frame.encode()
        for frame in (
            Frame(FrameKind.SETTINGS, 0, 0),
            Frame(FrameKind.HEADERS, 4, 1),
            Frame(FrameKind.HEADERS, 4, 3),
            Frame(FrameKind.PING, 0, 0, bytes(8)),
        )
    )
    flags = MessageFlags.ALWAYS_SET | MessageFlags.DATA_PRESENT | MessageFlags.WANTS_REPLY
    bodies = [encode_message(flags, 2, request) for request in requests]
    return [opening + Frame(FrameKind.DATA, 0, 1, body).encode() for body in bodies]


HTTP2 = _http2()


def _tunnel() -> list[bytes]:
    request = json.dumps({"type": "clientHandshakeRequest", "mtu": 16_000}).encode()
    opening = b"CDTunnel" + struct.pack(">H", len(request)) + request
    host, phone = (bytes.fromhex("fd7a0001" + "00" * 11 + end) for end in ("02", "01"))
    options = Options(mss=1340, window_shift=5, sack_permitted=True)
    segments = [
        Segment(50_000, 58_800, 7, 0, Flags.SYN, 65_535, options=options),
        Segment(50_000, 58_800, 8, 1, Flags.ACK, 65_535, b"PRI * HTTP/2.0"),
        Segment(50_000, 58_800, 9, 1, Flags.FIN | Flags.ACK, 65_535),
        Segment(50_000, 1, 9, 1, Flags.RST, 0),
    ]
    packets = [encode_packet(Packet(host, phone, segment)) for segment in segments]
    return [opening, *(opening + b"".join(packets[:count]) for count in range(1, 5))]


TUNNEL = _tunnel()


def _one(samples: list[bytes], most: int) -> Callable[[random.Random], bytes]:
    """Return a maker of noise, or of several messages in a row, mutated."""

    def make(random_: random.Random) -> bytes:
        if random_.random() < 0.1:
            return random_.randbytes(random_.randint(0, 400))
        messages = [random_.choice(samples) for _ in range(random_.randint(1, most))]
        return mutated(b"".join(messages), random_)

    return make


def _make_afc(random_: random.Random) -> bytes:
    """Return operations on paths that lead out, and mutated ones."""
    messages = []
    for number in range(random_.randint(1, 4)):
        operation = random_.choice((3, 7, 8, 9, 10, 13, 15, 16, 17, 20, 21, 24, 28, 30, 34))
        path = random_.choice(NASTY_PATHS)
        body = random_.choice((b"", struct.pack("<Q", random_.randint(0, 6)))) + path + b"\0"
        if operation in {24, 28}:
            body += random_.choice(NASTY_PATHS) + b"\0"
        messages.append(_afc(operation, body, number))
    joined = b"".join(messages)
    return joined if random_.random() < 0.5 else mutated(joined, random_)


def _make_install(random_: random.Random) -> bytes:
    """Return an install of a damaged package, or of a path that leads out."""
    if random_.random() < 0.5:
        path = random_.choice(NASTY_PATHS).decode("latin-1").replace("\0", "")
        request = _framed({"Command": "Install", "PackagePath": path})
        return b"R" + mutated(request, random_)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as ipa:
        ipa.writestr("Payload/A.app/Info.plist", plistlib.dumps({"CFBundleIdentifier": "../../x"}))
        ipa.writestr(random_.choice(("Payload/A.app/../../../canary", "/canary", "Payload/b")), b"")
    return b"P" + mutated(packed.getvalue(), random_)


def _eat(service: Callable[[], Service]) -> Callable[[bytes], None]:
    def eat(content: bytes) -> None:
        bench().feed(service(), content)
        bench().check_outside()

    return eat


def _service_of(name: str) -> Callable[[], Service]:
    return lambda: bench().phone._services[name]


def _lockdownd() -> Service:
    endpoint = bench().phone.endpoint(LOCKDOWN_PORT)
    assert endpoint is not None
    return endpoint.serve


def _eat_xpc(content: bytes) -> None:
    try:
        decode(content)
    except ProtocolError:
        return


def _eat_install(content: bytes) -> None:
    """Take a request as it is, or put a package where a request finds it."""
    name, kind, rest = "com.apple.mobile.installation_proxy", content[:1], content[1:]
    if kind == b"P":
        (bench().phone._media / "PublicStaging" / "x.ipa").write_bytes(rest)
        rest = _framed({"Command": "Install", "PackagePath": "PublicStaging/x.ipa"})
    _eat(_service_of(name))(rest)


TARGETS: dict[str, Target] = {
    "usbmux": Target(_one(MUX, 4), _eat(lambda: bench().mux.serve)),
    "lockdown": Target(_one(LOCKDOWN, 4), _eat(_lockdownd)),
    "afc": Target(_make_afc, _eat(_service_of("com.apple.afc"))),
    "install": Target(_make_install, _eat_install),
    "dtx": Target(_one(CALLS, 8), _eat(lambda: instruments(bench().phone.machine).serve)),
    "xpc": Target(_one(XPC, 1), _eat_xpc),
    "http2": Target(_one(HTTP2, 1), _eat(lambda: app_service(bench().phone.machine).serve)),
    "cdtunnel": Target(_one(TUNNEL, 1), _eat(lambda: bench().phone.tunnel.serve)),
}
