"""Reads JSON from outside field by field: type and range of each, or an error that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Sequence


MOST_TEXT: Final = 1024  # characters


class FieldError(ValueError):
    """A field is missing or has a wrong type or range; the text names field and rule."""


class Fields:
    """One JSON object under a name that errors can repeat."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise FieldError(f"{where} must be an object")
        self._values = cast("dict[str, object]", value)
        self._where = where

    def _name(self, key: str) -> str:
        return f"{self._where}.{key}"

    def has(self, key: str) -> bool:
        """Return whether the field is there and not null."""
        return self._values.get(key) is not None

    def child(self, key: str) -> Fields:
        """Return an object inside this one."""
        return Fields(self._values.get(key), self._name(key))

    def children(self, key: str) -> list[Fields]:
        """Return a list of objects; a missing list is empty."""
        items = self._values.get(key, [])
        if not isinstance(items, list):
            raise FieldError(f"{self._name(key)} must be a list")
        return [
            Fields(item, f"{self._name(key)}[{place}]")
            for place, item in enumerate(cast("list[object]", items))
        ]

    def integer(self, key: str, low: int, high: int) -> int:
        """Return an integer within `low` and `high`, both included."""
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise FieldError(f"{self._name(key)} must be an integer from {low} to {high}")
        return value

    def optional_integer(self, key: str, low: int, high: int) -> int | None:
        """Return an integer within the bounds, or None where the field is null or missing."""
        return self.integer(key, low, high) if self.has(key) else None

    def positive(self, key: str) -> float:
        """Return a number above 0 and at most a billion."""
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e9:
            raise FieldError(f"{self._name(key)} must be a number above 0")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return a boolean; a missing one is false."""
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            raise FieldError(f"{self._name(key)} must be true or false")
        return value

    def text(self, key: str, choices: Sequence[str] = ()) -> str:
        """Return a text, one of `choices` where there are any."""
        value = self._values.get(key)
        if (
            not isinstance(value, str)
            or len(value) > MOST_TEXT
            or (choices and value not in choices)
        ):
            raise FieldError(f"{self._name(key)} must be {' or '.join(choices) or 'a text'}")
        return value
