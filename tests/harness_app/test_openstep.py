"""The reader reads what Xcode writes and refuses what it would not."""

from __future__ import annotations

import pytest

from tests.harness_app.openstep import OpenStepError, parse


def test_objects_lists_quotes_and_comments_are_read() -> None:
    text = """// !$*UTF8*$!
    { a = 1; "b c" = ( x, "y\\"z", ); /* note */ d = { e = (); }; }"""
    assert parse(text) == {"a": "1", "b c": ["x", 'y\\"z'], "d": {"e": []}}


@pytest.mark.parametrize(
    "text",
    ["", "{", "{a=1}", "{a 1;}", "{a=1; a=2;}", "(a b)", "{a=;}", "a b", "{a=%;}", "(=)"],
)
def test_what_is_no_property_list_is_refused(text: str) -> None:
    with pytest.raises(OpenStepError):
        parse(text)
