"""How a broken rule of the configuration reads: our words, not those of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic_core import ErrorDetails

_Context = dict[str, Any]

_PHRASES: Final[Mapping[str, Callable[[_Context], str]]] = {
    "float_type": lambda _: "a number is expected",
    "float_parsing": lambda _: "a number is expected",
    "int_type": lambda _: "a whole number is expected",
    "int_parsing": lambda _: "a whole number is expected",
    "int_from_float": lambda _: "a whole number is expected",
    "finite_number": lambda _: "a finite number is expected",
    "bool_type": lambda _: "true or false is expected",
    "bool_parsing": lambda _: "true or false is expected",
    "string_type": lambda _: "text is expected",
    "dict_type": lambda _: "keys with values are expected",
    "model_type": lambda _: "keys with values are expected",
    "model_attributes_type": lambda _: "keys with values are expected",
    "tuple_type": lambda _: "a list is expected",
    "list_type": lambda _: "a list is expected",
    "too_long": lambda given: f"at most {given['max_length']} entries are expected",
    "greater_than": lambda given: f"more than {given['gt']:g} is expected",
    "greater_than_equal": lambda given: f"{given['ge']:g} or more is expected",
    "less_than": lambda given: f"less than {_number(given['lt'])} is expected",
    "less_than_equal": lambda given: f"{_number(given['le'])} or less is expected",
    "literal_error": lambda given: f"{given['expected']} is expected",
    "enum": lambda given: f"{given['expected']} is expected",
    "string_pattern_mismatch": lambda given: f"text that matches {given['pattern']} is expected",
    "string_too_short": lambda given: f"at least {given['min_length']} characters are expected",
    "string_too_long": lambda given: f"at most {given['max_length']} characters are expected",
}


def _number(value: float) -> str:
    """Return `5`, `0.5`, `10,000,000`."""
    return f"{value:,g}" if abs(value) < 1e6 else f"{value:,.0f}"


def phrase(detail: ErrorDetails) -> str:
    """Return what is expected, as a sentence without capital and full stop."""
    known = _PHRASES.get(detail["type"])
    if known is not None:
        return known(detail.get("ctx", {}))
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return f"{message[:1].lower()}{message[1:]}"
