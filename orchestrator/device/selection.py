"""Which phones `--devices` means: `all`, a list of names, or an expression over what phones are.

Pure: works on phones that discovery found. What was asked for and cannot be had is an error with
the names there are, never a silently smaller run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from orchestrator.device import grammar
from orchestrator.device.grammar import Combination, Comparison, Expression, Field, Negation
from orchestrator.domain.errors import NoPhoneError, UsageError
from orchestrator.domain.iphone import os_version, why_unlisted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.domain.phone import Phone

_NAME: Final = re.compile(r"[\w. -]+")
# Which signs of a comparison (-1 less, 0 equal, 1 more) satisfy an operator.
_SIGNS: Final[Mapping[str, set[int]]] = {
    "=": {0},
    "!=": {-1, 1},
    "<": {-1},
    "<=": {-1, 0},
    ">": {1},
    ">=": {0, 1},
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A phone that was meant and will not run."""

    phone: Phone
    reason: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run works with."""

    phones: tuple[Phone, ...]
    skipped: tuple[Skipped, ...]


def select(devices: str, phones: Sequence[Phone], *, include_unlisted: bool = False) -> Selection:
    """Return the phones that `devices` means, in the order discovery gave them.

    Args:
        devices: `all`, `NAME,NAME` (alias, name or UDID), or an expression of `grammar`.
        phones: Attached phones.
        include_unlisted: Run phones outside iPhone 14 to 16 or under iOS 18 too.

    Raises:
        UsageError: If the text cannot be read, or names a phone that is not there.
        NoPhoneError: If no phone is left to run.
    """
    meant = _meant(devices, phones)
    skipped = () if include_unlisted else tuple(_unlisted(meant))
    left_out = {entry.phone.udid for entry in skipped}
    selected = tuple(phone for phone in meant if phone.udid not in left_out)
    if not selected:
        raise _nothing_left(devices, phones, skipped)
    return Selection(selected, skipped)


def _meant(devices: str, phones: Sequence[Phone]) -> list[Phone]:
    if devices.strip().casefold() == "all":
        return list(phones)
    if any(part.strip().casefold() == "all" for part in devices.split(",")):
        raise UsageError(
            f"--devices: `all` stands alone, not in {devices!r}",
            remedy="Give `all`, or names: `fleet devices` lists them",
        )
    if grammar.is_expression(devices):
        tree = grammar.parse(devices)
        return [phone for phone in phones if matches(tree, phone)]
    udids = {_named(name, phones).udid for name in _names(devices)}
    return [phone for phone in phones if phone.udid in udids]


def _names(devices: str) -> list[str]:
    names: list[str] = []
    at = 1
    for part in devices.split(","):
        name = part.strip()
        if not name:
            raise grammar.complaint(devices, at, "expected `all`, a phone's name or an expression")
        bad = next((place for place, char in enumerate(part) if not _NAME.fullmatch(char)), None)
        if bad is not None:
            problem = f"a name has letters, digits, - _ . and spaces, not {part[bad]!r}"
            raise grammar.complaint(devices, at + bad, problem)
        names.append(name)
        at += len(part) + 1
    return names


def _named(name: str, phones: Sequence[Phone]) -> Phone:
    # An alias or UDID is unique; a phone's own name need not be.
    for keys in (_alias_and_udid, _own_name):
        found = [phone for phone in phones if _key(name) in keys(phone)]
        if len(found) == 1:
            return found[0]
        if found:
            aliases = ", ".join(_where(phone) for phone in found)
            raise UsageError(f"--devices: {name!r} is the name of {len(found)} phones: {aliases}")
    there = ", ".join(phone.alias for phone in phones)
    known = f"the phones there are: {there}" if there else "no phone is attached"
    raise UsageError(f"--devices: there is no phone {name!r}; {known}")


def _where(phone: Phone) -> str:
    # Two hosts may have an alias each; the UDID is what tells such phones apart.
    return f"{phone.alias} on {phone.host} ({phone.udid})" if phone.host else phone.alias


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()


def _alias_and_udid(phone: Phone) -> set[str]:
    return {_key(phone.alias), _key(phone.udid), _key(phone.udid).replace("-", "")}


def _own_name(phone: Phone) -> set[str]:
    return {_key(phone.name)}


def _unlisted(phones: Sequence[Phone]) -> list[Skipped]:
    reasons = [(phone, why_unlisted(phone.product_type, phone.os)) for phone in phones]
    return [Skipped(phone, reason) for phone, reason in reasons if reason is not None]


def _nothing_left(
    devices: str, phones: Sequence[Phone], skipped: tuple[Skipped, ...]
) -> NoPhoneError:
    if not phones:
        return NoPhoneError(
            "no phone is attached", remedy="Connect an iPhone, or pass --virtual for virtual ones"
        )
    if skipped:
        reasons = "; ".join(f"{entry.phone.alias}: {entry.reason}" for entry in skipped)
        return NoPhoneError(
            f"no phone is left to run: {reasons}",
            remedy="--include-unlisted runs them all the same",
        )
    there = ", ".join(f"{phone.alias} ({phone.model}, iOS {phone.os})" for phone in phones)
    return NoPhoneError(f"no attached phone matches {devices!r}; there are: {there}")


def matches(tree: Expression, phone: Phone) -> bool:
    """Return whether one phone satisfies an expression."""
    match tree:
        case Comparison():
            return _compare(tree, phone)
        case Negation(operand):
            return not matches(operand, phone)
        case Combination(needs_all, operands):
            results = (matches(operand, phone) for operand in operands)
            return all(results) if needs_all else any(results)
        case _:
            assert_never(tree)


def _compare(asked: Comparison, phone: Phone) -> bool:
    if asked.field is Field.OS:
        have, want = _padded(phone.os, asked.value)
        return (have > want) - (have < want) in _SIGNS[asked.operator]
    if asked.field is Field.RAM_GB:
        if phone.ram_gb is None:  # unknown is different from every number, and not ordered
            return asked.operator == "!="
        want_gb = int(asked.value)
        return (phone.ram_gb > want_gb) - (phone.ram_gb < want_gb) in _SIGNS[asked.operator]
    found = _key(asked.value) in _texts(asked.field, phone)
    return found is (asked.operator == "=")


def _padded(os: str, value: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two versions of equal length, so that 18 equals 18.0."""
    have, want = os_version(os), os_version(value)
    length = max(len(have), len(want))
    return have + (0,) * (length - len(have)), want + (0,) * (length - len(want))


def _texts(field: Field, phone: Phone) -> set[str]:
    texts: Mapping[Field, set[str]] = {
        Field.MODEL: {_key(phone.model), _key(phone.product_type)},
        Field.ALIAS: {_key(phone.alias)},
        Field.UDID: {_key(phone.udid), _key(phone.udid).replace("-", "")},
        Field.TAG: {_key(tag) for tag in phone.tags},
        Field.SOURCE: {_key(phone.source)},
        Field.HOST: {_key(phone.host)} if phone.host else set(),
    }
    return texts[field]
