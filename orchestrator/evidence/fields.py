"""Reading fields of hostile JSON: a value of the wrong type is a missing value, never an error."""

from __future__ import annotations

from typing import Final

Json = dict[str, object]

_LARGEST: Final = 1 << 63


def text(source: Json, *keys: str) -> str | None:
    """Return the first of the fields that is a text and not empty."""
    for key in keys:
        value = source.get(key)
        if isinstance(value, str) and value:
            return _whole(value)
    return None


def count(source: Json, key: str) -> int | None:
    """Return a whole number from 0 below 2**63; JSON's true and 1.5 are none."""
    value = source.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST:
        return value
    return None


def mapping(source: Json, key: str) -> Json:
    """Return an object, empty where there is none."""
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def texts(source: Json, key: str) -> list[str]:
    """Return the texts of a list, empty where there is none."""
    value = source.get(key)
    items = value if isinstance(value, list) else []
    return [_whole(item) for item in items if isinstance(item, str)]


def _whole(value: str) -> str:
    # JSON can hold half a surrogate pair, which no file takes.
    return value.encode("utf-8", "replace").decode()
