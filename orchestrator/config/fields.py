"""Field types of the configuration: units, versions, texts from the environment."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable  # noqa: TC003 - pydantic reads annotations
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from orchestrator.config.position import WrittenFloat
from orchestrator.domain.checks import CHECK_IDS
from orchestrator.domain.iphone import CATALOG, by_name
from orchestrator.domain.measures import MEASURE_NAMES
from orchestrator.domain.memory_class import MemoryClass

_ENVIRONMENT_TEXT: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_DURATION: Final = re.compile(r"(?P<amount>[0-9]{1,9}(?:\.[0-9]{1,9})?)(?P<unit>ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MIN_UDID_LENGTH: Final = 25


def _version_text(value: object) -> object:
    if isinstance(value, WrittenFloat):
        return value.text
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _check_version(value: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]?(\.[0-9]{1,2}){0,2}", value):
        raise ValueError("an iOS version like 18.5 is expected")
    return value


def _check_model(value: str) -> str:
    model = by_name(value)
    if model is None:
        raise ValueError(f"a model is expected, one of {', '.join(m.model for m in CATALOG)}")
    return model.model


def _check_udid(value: str) -> str:
    if len(value) < _MIN_UDID_LENGTH or not re.fullmatch(r"[0-9A-Fa-f-]+", value):
        raise ValueError("a UDID like 00008140-000A1B2C3D4E5F60 is expected")
    return value.upper() if "-" in value else value.lower()


def check_alias(value: str) -> str:
    """Return a name that is safe in paths, files and on a command line; else ValueError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise ValueError("an alias is 1 to 64 letters, digits, '.', '_' or '-'")
    return value


def _check_id(value: str) -> str:
    if value not in CHECK_IDS:
        close = difflib.get_close_matches(value, CHECK_IDS, n=1, cutoff=0.3)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"no check has this id{hint}")
    return value


def _check_pattern(value: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)*(\.x)?", value):
        raise ValueError("an iOS version like 18.5, or 18.x for any of it, is expected")
    return value


def _check_measure(value: str) -> str:
    if value not in MEASURE_NAMES:
        raise ValueError(f"a measure is expected, one of {', '.join(MEASURE_NAMES)}")
    return value


def _memory_class(value: object) -> object:
    names = [name.value for name in MemoryClass]
    if value not in names:
        raise ValueError(f"a memory class is expected, one of {', '.join(names)}")
    return MemoryClass(str(value))


def _whole_number_as_float(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(value)


_VERSION_SCHEMA: Final = WithJsonSchema({"type": ["string", "number"]})


def _one_of(names: Iterable[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(names)})


VersionText = Annotated[
    str, BeforeValidator(_version_text), AfterValidator(_check_version), _VERSION_SCHEMA
]
VersionPattern = Annotated[
    str, BeforeValidator(_version_text), AfterValidator(_check_pattern), _VERSION_SCHEMA
]
MeasureName = Annotated[str, AfterValidator(_check_measure), _one_of(MEASURE_NAMES)]
ModelName = Annotated[str, AfterValidator(_check_model), _one_of(entry.model for entry in CATALOG)]
CheckId = Annotated[str, AfterValidator(_check_id), _one_of(CHECK_IDS)]
MemoryClassName = Annotated[MemoryClass, BeforeValidator(_memory_class)]
Udid = Annotated[str, AfterValidator(_check_udid)]
Alias = Annotated[str, AfterValidator(check_alias)]
Number = Annotated[
    float, BeforeValidator(_whole_number_as_float), Field(allow_inf_nan=False)
]  # a float may be written 45
Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
# Far above what any phone decodes or prefills: beyond it, somebody slipped on a key.
DecodeRate = Annotated[Number, Field(gt=0, le=100_000)]  # tokens/s
PrefillRate = Annotated[Number, Field(gt=0, le=10_000_000)]  # tokens/s
Percent = Annotated[Number, Field(ge=0, le=100)]
WholePercent = Annotated[int, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1)]


def is_reference(text: str) -> bool:
    """Return whether a text is one `${NAME}` and nothing else."""
    return _ENVIRONMENT_TEXT.fullmatch(text) is not None


def from_environment(text: str | None) -> str | None:
    """Return a text with each `${NAME}` replaced; None where a name is not set or empty."""
    if text is None:
        return None
    names = _ENVIRONMENT_TEXT.findall(text)
    if any(not os.environ.get(name) for name in names):
        return None
    return _ENVIRONMENT_TEXT.sub(lambda match: os.environ[match[1]], text)


def parse_duration(text: str) -> float:
    """Return the seconds of `45s`, `30m`, `8h` or `1500ms`.

    Raises:
        ValueError: If the unit is missing or unknown, or the amount is 0.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a duration needs a unit, like 60s, 30m or 8h, not {text!r}")
    seconds = float(match["amount"]) * _SECONDS[match["unit"]]
    if seconds <= 0:
        raise ValueError(f"a duration must be longer than 0, not {text!r}")
    return seconds
