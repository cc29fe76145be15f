from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.report.wording import clean, duration, markdown, one_line, quantity

ANY_TEXT = st.text(st.characters())  # lone surrogates and control characters too


@settings(derandomize=True, deadline=None)
@given(ANY_TEXT)
def test_any_clean_text_may_stand_in_xml(text: str) -> None:
    element = ET.Element("a", message=clean(text))
    element.text = clean(text)
    written = ET.tostring(element, encoding="utf-8")
    ET.fromstring(written)  # noqa: S314 - our own output


@settings(derandomize=True, deadline=None)
@given(ANY_TEXT)
def test_a_markdown_text_is_one_line_without_cell_borders_or_tags(text: str) -> None:
    written = markdown(text)
    assert len(written.splitlines()) <= 1
    assert "|" not in written.replace("\\|", "")
    assert "<" not in written


def test_markup_in_markdown_reads_as_text() -> None:
    assert markdown("a|b `c` <d> & *e* @f") == r"a\|b \`c\` &lt;d&gt; &amp; \*e\* &#64;f"
    assert markdown("_e_ [g](h) a_b-c") == r"\_e\_ \[g\](h) a_b-c"


def test_texts_that_turn_their_direction_are_shown_to_have_done_so() -> None:
    assert clean("abc\u202edef") == "abc\ufffddef"


def test_one_line_keeps_words_apart() -> None:
    assert one_line(" a\n\tb\r\n c ") == "a b c"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "bytes", "—"),
        (3 * 1024**2, "bytes", "3.0 MiB"),
        (1234567, "tokens", "1,234,567 tokens"),
        (1, "faults", "1 fault"),
        (1, "s", "1 s"),
        (1.0, "tokens/s", "1 tokens/s"),
        (86_400.0, "s", "86,400 s"),
        (9999.4, "s", "9,999 s"),
        (0.123456, None, "0.1235"),
        (0, None, "0"),
        ("int4", None, "int4"),
        ("a\x00b", "c\nd", "a\ufffdb c d"),
    ],
)
def test_quantities_carry_their_unit(
    value: float | str | None, unit: str | None, text: str
) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (3.42, "3.4 s"),
        (59.9, "59.9 s"),
        (125.2, "2 min 05 s"),
        (3599.9, "1 h 00 min"),
        (7380, "2 h 03 min"),
    ],
)
def test_durations_read_like_a_person_says_them(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
