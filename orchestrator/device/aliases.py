"""Aliases: what people and folders call a phone. Made from hostile names, safe and unique."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final

from orchestrator.device.grammar import KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LENGTH: Final = 40
# `all` means every phone; the keywords make an expression.
_RESERVED: Final = KEYWORDS | {"all"}


def safe_name(name: str) -> str:
    """Return a name of `[A-Za-z0-9._-]` only, without a leading dot or dash; may be empty."""
    ascii_only = unicodedata.normalize("NFKD", name[:256]).encode("ascii", "ignore").decode()
    dashed = re.sub(r"[^A-Za-z0-9._]+", "-", ascii_only)
    return dashed.strip("-._")[:MAX_LENGTH].rstrip("-._")


def aliases_of(names: Mapping[str, str], expected: Mapping[str, str]) -> dict[str, str]:
    """Return an alias per UDID: unique whatever the case, the same for the same set of phones.

    Args:
        names: DeviceName by UDID.
        expected: Alias by UDID from the configuration; taken as they are.
    """
    aliases = {udid: expected[udid] for udid in names if udid in expected}
    bases = {udid: safe_name(name) or "iphone" for udid, name in names.items()}
    wanted = Counter(base.casefold() for udid, base in bases.items() if udid not in aliases)
    taken = {alias.casefold() for alias in expected.values()} | _RESERVED
    for udid in sorted(names.keys() - aliases.keys()):
        base = bases[udid]
        alone = (
            wanted[base.casefold()] == 1 and base.casefold() not in taken and safe_name(names[udid])
        )
        alias = base if alone else _with_udid(base, udid, taken)
        taken.add(alias.casefold())
        aliases[udid] = alias
    return aliases


def _with_udid(base: str, udid: str, taken: set[str]) -> str:
    digits = re.sub(r"[^A-Za-z0-9]", "", udid)
    for length in range(4, len(digits)):
        alias = f"{base}-{digits[-length:]}"
        if alias.casefold() not in taken:
            return alias
    number = next(n for n in range(2, len(taken) + 3) if f"{base}-{n}".casefold() not in taken)
    return f"{base}-{number}"
