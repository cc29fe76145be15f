"""NSKeyedArchiver, as much of it as DTX needs, over the UIDs of `plistlib`."""

from __future__ import annotations

import datetime as dt
import plistlib
from dataclasses import dataclass, field
from plistlib import UID
from typing import Any, Final, TypeAlias

from orchestrator.virtual.wire import HOSTILE_PLIST, ProtocolError

# None, bool, int, float, str, bytes, datetime, dict, list, tuple or NSError
Archivable: TypeAlias = Any

_NULL: Final = "$null"
_ARCHIVER: Final = "NSKeyedArchiver"
_VERSION: Final = 100_000
_MAX_DEPTH: Final = 64
_COCOA_EPOCH: Final = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class NSError:
    """What a phone answers when a call fails."""

    domain: str
    code: int
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, domain: str, code: int, text: str) -> NSError:
        """Return an error with a description."""
        return cls(domain, code, {"NSLocalizedDescription": text})


def archive(value: Archivable) -> bytes:
    """Return the binary plist of an archived object.

    Raises:
        TypeError: If the object has no archived form.
    """
    archiver = _Archiver()
    root = archiver.add(value)
    document = {
        "$version": _VERSION,
        "$archiver": _ARCHIVER,
        "$top": {"root": root},
        "$objects": archiver.objects,
    }
    return plistlib.dumps(document, fmt=plistlib.FMT_BINARY)


class _Archiver:
    def __init__(self) -> None:
        self.objects: list[Any] = [_NULL]
        self._classes: dict[str, UID] = {}

    def add(self, value: Archivable) -> UID:
        if value is None:
            return UID(0)
        if isinstance(value, bool | int | float | str | bytes):
            self.objects.append(value)
            return UID(len(self.objects) - 1)
        slot = len(self.objects)
        self.objects.append(None)  # keeps the place: members come after their owner
        self.objects[slot] = self._compound(value)
        return UID(slot)

    def _compound(self, value: Archivable) -> dict[str, Any]:
        if isinstance(value, dict):
            keys = [self.add(key) for key in value]
            items = [self.add(item) for item in value.values()]
            return {"NS.keys": keys, "NS.objects": items, "$class": self._class("NSDictionary")}
        if isinstance(value, list | tuple):
            items = [self.add(item) for item in value]
            return {"NS.objects": items, "$class": self._class("NSArray")}
        if isinstance(value, dt.datetime):
            since = (value - _COCOA_EPOCH).total_seconds()
            return {"NS.time": since, "$class": self._class("NSDate")}
        if isinstance(value, NSError):
            return {
                "NSCode": value.code,
                "NSDomain": self.add(value.domain),
                "NSUserInfo": self.add(value.info),
                "$class": self._class("NSError"),
            }
        raise TypeError(f"{type(value).__name__} has no archived form")

    def _class(self, name: str) -> UID:
        if name not in self._classes:
            self.objects.append({"$classname": name, "$classes": [name, "NSObject"]})
            self._classes[name] = UID(len(self.objects) - 1)
        return self._classes[name]


def unarchive(data: bytes) -> Archivable:
    """Return the object in an archive. Objects of unknown classes become dictionaries.

    Raises:
        ProtocolError: If the bytes are no archive, or one that contains itself.
    """
    try:
        document = plistlib.loads(data)
        return _Unarchiver(document["$objects"]).value(document["$top"]["root"], 0)
    except ProtocolError:
        raise
    except HOSTILE_PLIST as error:  # the lookups below fail with the same
        raise ProtocolError(f"not an archive: {error}") from error


class _Unarchiver:
    def __init__(self, objects: list[Any]) -> None:
        self._objects = objects

    def value(self, reference: Archivable, depth: int) -> Archivable:
        if depth > _MAX_DEPTH:
            raise ProtocolError("nested too deeply")
        item = self._objects[reference.data] if isinstance(reference, UID) else reference
        if item == _NULL:
            return None
        return self._compound(item, depth + 1) if isinstance(item, dict) else item

    def _compound(self, item: dict[str, Any], depth: int) -> Archivable:
        if "NS.keys" in item:
            pairs = zip(item["NS.keys"], item["NS.objects"], strict=True)
            return {self.value(key, depth): self.value(value, depth) for key, value in pairs}
        if "NS.objects" in item:
            return [self.value(value, depth) for value in item["NS.objects"]]
        for name in ("NS.string", "NS.data", "NS.uuidbytes", "NS.time"):
            if name in item:
                return self.value(item[name], depth)
        members = {key: self.value(value, depth) for key, value in item.items() if key != "$class"}
        if "NSCode" in members:
            return NSError(members["NSDomain"], members["NSCode"], members.get("NSUserInfo") or {})
        return members
