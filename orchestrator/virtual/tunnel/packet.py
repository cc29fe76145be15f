"""IPv6 packets that carry TCP segments: parsing, encoding, sequence arithmetic.

Source: RFC 8200 (IPv6), RFC 9293 (TCP), RFC 7323 (window scale), RFC 2018 (SACK).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Final

IPV6_HEADER_BYTES: Final = 40
TCP_HEADER_BYTES: Final = 20
DEFAULT_MSS: Final = 1220  # of a peer that names none: the IPv6 minimum MTU less both headers

_NEXT_HEADER_TCP: Final = 6
_HOP_LIMIT: Final = 64
_IPV6: Final = struct.Struct("!IHBB")
_TCP: Final = struct.Struct("!HHIIBBHHH")
_MODULUS: Final = 1 << 32


class Flags(IntFlag):
    """TCP flags."""

    NONE = 0
    FIN = 1
    SYN = 2
    RST = 4
    PSH = 8
    ACK = 16


@dataclass(frozen=True, slots=True)
class Options:
    """TCP options that this stack knows."""

    mss: int | None = None
    window_shift: int | None = None
    sack_permitted: bool = False
    sack: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP segment; sequence numbers are modulo 2**32."""

    source_port: int
    target_port: int
    seq: int
    ack: int
    flags: Flags
    window: int  # as on the wire, before scaling
    data: bytes = b""
    options: Options = field(default=Options())


@dataclass(frozen=True, slots=True)
class Packet:
    """A segment between two IPv6 addresses of 16 bytes."""

    source: bytes
    target: bytes
    segment: Segment


def add(seq: int, count: int) -> int:
    """Return the sequence number `count` bytes after `seq`."""
    return (seq + count) % _MODULUS


def distance(start: int, end: int) -> int:
    """Return how many bytes lie from `start` to `end`, going up."""
    return (end - start) % _MODULUS


def is_before(seq: int, other: int) -> bool:
    """Whether `seq` comes before `other`, within half of the number space."""
    return seq != other and distance(seq, other) < _MODULUS // 2


def payload_length(header: bytes) -> int:
    """Return how many bytes follow an IPv6 header."""
    return int.from_bytes(header[4:6], "big")


def parse_packet(packet: bytes) -> Packet | None:
    """Return the TCP segment in a packet, or None if there is none in it.

    The checksum is not looked at: the tunnel is a TLS stream, which loses and alters nothing.
    """
    if len(packet) < IPV6_HEADER_BYTES + TCP_HEADER_BYTES or packet[6] != _NEXT_HEADER_TCP:
        return None
    source, target, window_end = packet[8:24], packet[24:40], IPV6_HEADER_BYTES
    source_port, target_port, seq, ack, offset, flags, window, _, _ = _TCP.unpack_from(
        packet, window_end
    )
    data_at = window_end + (offset >> 4) * 4
    if not window_end + TCP_HEADER_BYTES <= data_at <= len(packet):
        return None
    options = parse_options(packet[window_end + TCP_HEADER_BYTES : data_at])
    segment = Segment(
        source_port, target_port, seq, ack, Flags(flags & 31), window, packet[data_at:], options
    )
    return Packet(source, target, segment)


def encode_packet(packet: Packet) -> bytes:
    """Return the bytes of a packet."""
    segment = packet.segment
    options = encode_options(segment.options)
    header = _TCP.pack(
        segment.source_port,
        segment.target_port,
        segment.seq,
        segment.ack,
        ((TCP_HEADER_BYTES + len(options)) // 4) << 4,
        segment.flags,
        segment.window,
        0,
        0,
    )
    body = header + options + segment.data
    check = checksum(packet.source, packet.target, body)
    ip = _IPV6.pack(6 << 28, len(body), _NEXT_HEADER_TCP, _HOP_LIMIT)
    return b"".join(
        (ip, packet.source, packet.target, body[:16], check.to_bytes(2, "big"), body[18:])
    )


def checksum(source: bytes, target: bytes, body: bytes) -> int:
    """Return the TCP checksum over the pseudo header and a segment with a checksum of zero.

    One division does it: 2**16 is 1 modulo 0xFFFF, so a number's residue is the sum of its words.
    """
    pseudo = source + target + struct.pack("!II", len(body), _NEXT_HEADER_TCP)
    even = body + b"\0" * (len(body) % 2)
    total = int.from_bytes(pseudo, "big") + int.from_bytes(even, "big")
    return ~(total % 0xFFFF) & 0xFFFF or 0xFFFF


def encode_options(options: Options) -> bytes:
    """Return option bytes, padded to whole words."""
    parts = []
    if options.mss is not None:
        parts.append(struct.pack("!BBH", 2, 4, options.mss))
    if options.window_shift is not None:
        parts.append(struct.pack("!BBBB", 1, 3, 3, options.window_shift))
    if options.sack_permitted:
        parts.append(b"\1\1\4\2")
    if options.sack:
        blocks = b"".join(struct.pack("!II", *block) for block in options.sack)
        parts.append(b"\1\1" + bytes([5, 2 + len(blocks)]) + blocks)
    return b"".join(parts)


def parse_options(data: bytes) -> Options:
    """Return the known options; what is cut short or unknown is passed over."""
    values: dict[int, bytes] = {}
    at = 0
    while at < len(data) and data[at] != 0:
        if data[at] == 1:
            at += 1
            continue
        length = data[at + 1] if at + 1 < len(data) else 0
        if length < 2:
            break
        values[data[at]] = data[at + 2 : at + length]
        at += length
    mss, shift = values.get(2, b""), values.get(3, b"")
    blocks = values.get(5, b"")
    return Options(
        mss=int.from_bytes(mss, "big") if len(mss) == 2 else None,
        window_shift=min(shift[0], 14) if len(shift) == 1 else None,
        sack_permitted=4 in values,
        sack=tuple(struct.iter_unpack("!II", blocks)) if len(blocks) % 8 == 0 else (),
    )
