"""Deliberate defects, for the self-test that proves the host's checks can fail.

A defect changes what the app does and never what it claims: it appears in no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from orchestrator.domain.memory_class import GIB, MemoryClass, memory_class_of

JETSAM_FROM_TOKEN: Final = 600


class DefectName(StrEnum):
    """The defects an app can be launched with."""

    NEVER_TRIM = "never-trim"  # the budget is ignored, the cache grows to the model's capacity
    NO_EVICT = "no-evict"  # memory warnings are recorded and not answered
    NAIVE_8GIB = "naive-8gib"  # 8 GB phones are told by `>= 8 GiB`, which is true on none of them
    TRIM_STALE_STATE = "trim-stale-state"  # a trim is claimed and the old rows stay
    JETSAM = "jetsam"  # memory is leaked until the kernel ends the app


class UnknownDefectError(ValueError):
    """`FLEET_DEFECT` names no defect."""


@dataclass(frozen=True, slots=True)
class Defect:
    """The defect of a launch; `name` is None for a healthy app."""

    name: DefectName | None = None
    parameter: int | None = None

    @property
    def leak_from_token(self) -> int | None:
        """Ordinal of the first token after which memory leaks, None for no leak."""
        if self.name is not DefectName.JETSAM:
            return None
        return JETSAM_FROM_TOKEN if self.parameter is None else self.parameter

    def memory_class(self, physical_memory_bytes: int) -> MemoryClass | None:
        """Return the class that this app believes the phone to have."""
        if self.name is not DefectName.NAIVE_8GIB:
            return memory_class_of(physical_memory_bytes)
        return MemoryClass.GB8 if physical_memory_bytes >= 8 * GIB else MemoryClass.GB6


def parse_defect(text: str) -> Defect:
    """Return the defect of `name` or `name:parameter`; an empty text is a healthy app.

    Raises:
        UnknownDefectError: If there is no such defect or the parameter is not a count.
    """
    if not text:
        return Defect()
    name, colon, parameter = text.partition(":")
    try:
        count = int(parameter) if colon else None
        defect = Defect(DefectName(name), count)
    except ValueError as error:
        raise UnknownDefectError(f"no defect {text!r}") from error
    if count is not None and count < 1:
        raise UnknownDefectError(f"the parameter of {text!r} is not a count")
    return defect
