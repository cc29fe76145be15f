"""The content of a CMS SignedData, which is what an `embedded.mobileprovision` is.

Only the content is taken out; the signature is not verified: the phone does that, with Apple's
roots. Source: RFC 5652, sections 3 and 5; X.690 for the encoding, indefinite lengths included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNED_DATA: Final = bytes.fromhex("2a864886f70d010702")  # 1.2.840.113549.1.7.2
_SEQUENCE, _OCTETS, _OID = 0x30, 0x04, 0x06
_CONTEXT_0, _CONSTRUCTED_OCTETS = 0xA0, 0x24
_DEEPEST: Final = 16


class DerError(ValueError):
    """The bytes are no such structure."""


@dataclass(frozen=True, slots=True)
class Node:
    """One element: tag, and the bytes between its header and its end."""

    tag: int
    content: bytes


def signed_content(data: bytes) -> bytes:
    """Return what a SignedData signs.

    Raises:
        DerError: If the bytes are no SignedData with content inside.
    """
    outer = _only(data, _SEQUENCE)
    kind, wrapped = _take(outer, 2)
    if kind != Node(_OID, SIGNED_DATA) or wrapped.tag != _CONTEXT_0:
        raise DerError("not a CMS SignedData")
    _, _, encapsulated = _take(_only(wrapped.content, _SEQUENCE), 3)
    _, content = _take(encapsulated.content, 2)
    if encapsulated.tag != _SEQUENCE or content.tag != _CONTEXT_0:
        raise DerError("a CMS SignedData without content")
    return b"".join(_octets(node, 0) for node in children(content.content))


def children(data: bytes) -> Iterator[Node]:
    """Yield the elements that stand one after another.

    Raises:
        DerError: At the first that is cut short.
    """
    at = 0
    while at < len(data):
        node, at = _element(data, at, 0)
        yield node


def _octets(node: Node, depth: int) -> bytes:
    if node.tag == _OCTETS:
        return node.content
    if node.tag != _CONSTRUCTED_OCTETS or depth > _DEEPEST:
        raise DerError("content that is no octet string")
    return b"".join(_octets(child, depth + 1) for child in children(node.content))


def _only(data: bytes, tag: int) -> bytes:
    (node,) = _take(data, 1)
    if node.tag != tag:
        raise DerError("an unexpected element")
    return node.content


def _take(data: bytes, count: int) -> list[Node]:
    found = []
    for node in children(data):
        found.append(node)
        if len(found) == count:
            return found
    raise DerError("elements are missing")


def _element(data: bytes, at: int, depth: int) -> tuple[Node, int]:
    if at + 2 > len(data) or depth > _DEEPEST:
        raise DerError("cut short")
    tag, first = data[at], data[at + 1]
    at += 2
    if first == 0x80:  # indefinite: up to two zero bytes, elements in between
        begin = at
        while data[at : at + 2] != b"\0\0":
            _, at = _element(data, at, depth + 1)
        return Node(tag, data[begin:at]), at + 2
    length = first
    if first > 0x80:
        size = first & 0x7F
        length = int.from_bytes(data[at : at + size], "big")
        at += size
    if at + length > len(data):
        raise DerError("cut short")
    return Node(tag, data[at : at + length]), at + length
