from __future__ import annotations

import plistlib
from plistlib import UID
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.virtual.dtx.nska import NSError, archive, unarchive
from orchestrator.virtual.wire import ProtocolError

texts = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), max_size=20).filter(
    lambda text: text != "$null"
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts | st.binary(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(texts, children, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_archived_is_unarchived(value: object) -> None:
    assert unarchive(archive(value)) == value


def test_an_error_keeps_domain_code_and_text() -> None:
    error = NSError.of("NSPOSIXErrorDomain", 3, "No such process")
    assert unarchive(archive(error)) == error


def test_mutable_and_wrapped_foundation_classes_are_read() -> None:
    objects = [
        "$null",
        {"NS.objects": [UID(2), UID(3)], "$class": UID(4)},
        {"NS.string": "text", "$class": UID(5)},
        {"NS.data": b"data", "$class": UID(5)},
        {"$classname": "NSMutableArray", "$classes": []},
        {"$classname": "NSMutableString", "$classes": []},
    ]
    document = {"$top": {"root": UID(1)}, "$objects": objects}
    assert unarchive(plistlib.dumps(document, fmt=plistlib.FMT_BINARY)) == ["text", b"data"]


def test_an_archive_that_contains_itself_is_refused() -> None:
    document = {"$top": {"root": UID(1)}, "$objects": ["$null", {"NS.objects": [UID(1)]}]}
    with pytest.raises(ProtocolError, match="deep"):
        unarchive(plistlib.dumps(document, fmt=plistlib.FMT_BINARY))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"$top": {}, "$objects": []},
        {"$top": {"root": UID(9)}, "$objects": ["$null"]},
        {"$top": {"root": UID(0)}, "$objects": [{"NS.keys": [1], "NS.objects": []}]},
        {"$top": [], "$objects": 7},
    ],
)
def test_a_plist_that_is_no_archive_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        unarchive(plistlib.dumps(document, fmt=plistlib.FMT_BINARY))


@given(st.binary(max_size=100))
def test_bytes_that_are_no_plist_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        unarchive(data)


def test_an_object_without_an_archived_form_is_refused() -> None:
    with pytest.raises(TypeError):
        archive(object())
