from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.device.grammar import MAX_DEPTH, parse
from orchestrator.device.selection import matches, select
from orchestrator.domain.errors import NoPhoneError, UsageError
from tests.device.phones import phone

if TYPE_CHECKING:
    from orchestrator.domain.phone import Phone

OLD = phone("old", "iPhone14,7", "18.9", udid="00008110-0000000000000A01", tags=("spare",))
PRO = phone("pro", "iPhone16,1", "18.10", udid="00008130-0000000000000A02", tags=("release", "lab"))
NEW = phone("new", "iPhone17,3", "26.0", udid="00008140-0000000000000A03", source="farm")
ALL = (OLD, PRO, NEW)


def chosen(devices: str) -> list[str]:
    return [one.alias for one in select(devices, ALL).phones]


@pytest.mark.parametrize("text", ["pro,all", "all,pro", "ALL , all"])
def test_all_stands_alone(text: str) -> None:
    with pytest.raises(UsageError, match=r"--devices: `all` stands alone.*`fleet devices`"):
        chosen(text)


@pytest.mark.parametrize("text", ["all", " ALL ", "All"])
def test_all_means_every_phone_in_order_of_discovery(text: str) -> None:
    assert chosen(text) == ["old", "pro", "new"]


@pytest.mark.parametrize(
    ("text", "aliases"),
    [
        ("pro", ["pro"]),
        ("new, old", ["old", "new"]),
        ("PRO", ["pro"]),
        ("pro,pro", ["pro"]),
        ("00008130-0000000000000a02", ["pro"]),
        ("000081300000000000000A02", ["pro"]),
    ],
)
def test_names_are_aliases_or_udids_whatever_the_case(text: str, aliases: list[str]) -> None:
    assert chosen(text) == aliases


def test_a_phones_own_name_with_spaces_selects_it() -> None:
    kitchen = phone("Kitchen-phone", name="Kitchen  phone")
    assert select("kitchen phone", [kitchen, OLD]).phones == (kitchen,)


def test_an_alias_wins_over_another_phones_own_name() -> None:
    impostor = phone("other", name="pro")
    assert select("pro", [impostor, PRO]).phones == (PRO,)


def test_a_name_that_two_phones_have_asks_for_an_alias() -> None:
    twins = [phone("iPhone-AAAA", name="iPhone"), phone("iPhone-BBBB", name="iPhone")]
    with pytest.raises(UsageError, match="2 phones: iPhone-AAAA, iPhone-BBBB"):
        select("iphone", twins)


def test_an_unknown_name_lists_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="no phone 'nwe'; the phones there are: old, pro, new"):
        chosen("pro,nwe")


def test_an_unknown_name_says_so_even_when_no_phone_is_attached() -> None:
    with pytest.raises(UsageError, match="no phone is attached"):
        select("bench-01", [])


@pytest.mark.parametrize(
    ("text", "position"), [("pro,,new", 5), ("", 1), ("  ", 1), ("pro;new", 4), ("pro,n/w", 6)]
)
def test_a_bad_list_of_names_points_at_the_place(text: str, position: int) -> None:
    with pytest.raises(UsageError, match=f"position {position}:"):
        chosen(text)


@pytest.mark.parametrize(
    ("text", "aliases"),
    [
        ("model = iPhone 15 Pro", ["pro"]),
        ("model = 'iphone 15 pro'", ["pro"]),
        ('model = "iPhone  15 Pro"', ["pro"]),
        ("model=iPhone16,1", ["pro"]),
        ("model != iPhone 15 Pro", ["old", "new"]),
        ("os > 18.9", ["pro", "new"]),
        ("os >= 18.10", ["pro", "new"]),
        ("os < 18.10", ["old"]),
        ("os <= 18.9", ["old"]),
        ("os = 26", ["new"]),
        ("os != 26.0.0", ["old", "pro"]),
        ("ram_gb = 6", ["old"]),
        ("ram_gb >= 8", ["pro", "new"]),
        ("alias = new", ["new"]),
        ("udid = 000081400000000000000A03", ["new"]),
        ("tag = release", ["pro"]),
        ("tag != release", ["old", "new"]),
        ("source = farm", ["new"]),
        ("model = iPhone 15 Pro and os >= 18.5", ["pro"]),
        ("tag = spare or source = farm", ["old", "new"]),
        ("not tag = spare", ["pro", "new"]),
        ("NOT (tag = spare OR source = farm)", ["pro"]),
        ("tag = spare or tag = lab and os > 18.9", ["old", "pro"]),
        ("(tag = spare or tag = lab) and os > 18.9", ["pro"]),
        ("ram_gb=8 and not source=farm", ["pro"]),
    ],
)
def test_an_expression_selects_by_what_phones_are(text: str, aliases: list[str]) -> None:
    assert chosen(text) == aliases


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("model", 1, "no phone 'model'"),
        ("modle = x", 1, "expected one of model, os, ram_gb, alias, udid, tag, source"),
        ("os >", 5, "expected a value, found the end"),
        ("os >= new", 7, "expected a version like 18.5, found 'new'"),
        ("os >= 18.", 7, "expected a version"),
        ("os >= ١٨", 7, "expected a version"),
        ("ram_gb = 8gb", 10, "expected whole GB like 8"),
        ("model > iPhone 15", 7, "model can be compared with = and != only"),
        ("model iPhone", 1, "no phone"),
        ("os = 18 and", 12, "expected one of model"),
        ("os = 18 os = 19", 9, "expected `and`, `or` or the end, found 'os'"),
        ("(os = 18", 9, "expected `)`"),
        ("os = 18)", 8, "expected `and`, `or` or the end, found ')'"),
        ("os == 18", 5, "expected a value, found '='"),
        ("os = 18 and and os = 19", 13, "expected one of model"),
        ("alias = 'open", 9, '"\'" was not expected here'),
        ("alias = a!b", 10, "'!' was not expected here"),
        ("() and os = 1", 2, "expected one of model"),
    ],
)
def test_a_wrong_expression_names_position_and_expectation(
    text: str, position: int, expected: str
) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(text)
    assert expected in str(caught.value)
    if "no phone" not in expected:
        assert f"position {position}:" in str(caught.value)
        before = text[: position - 1].rstrip()
        assert not before or str(caught.value).endswith(f", after: {before}")


def test_a_long_expression_is_not_repeated_whole_and_the_complaint_is_one_line() -> None:
    with pytest.raises(UsageError) as caught:
        chosen("alias = a and " * 500)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_parentheses_without_end_are_refused_and_do_not_exhaust_the_stack() -> None:
    with pytest.raises(UsageError, match=f"nested deeper than {MAX_DEPTH}"):
        chosen("(" * 100_000 + "os = 18")


def test_an_unknown_models_memory_is_no_number() -> None:
    strange = phone("strange", "iPhone99,9")
    wanted = [text for text in ("<", "<=", "=", ">=", ">", "!=") if _is_gb(strange, text)]
    assert wanted == ["!="]


def _is_gb(one: Phone, operator: str) -> bool:
    return matches(parse(f"ram_gb {operator} 8"), one)


def test_no_phone_at_all_is_no_usage_error() -> None:
    with pytest.raises(NoPhoneError, match="no phone is attached"):
        select("all", [])


def test_an_expression_that_selects_nothing_lists_what_there_is() -> None:
    with pytest.raises(NoPhoneError, match=r"matches 'os > 99'; .*old \(iPhone 14, iOS 18.9\)"):
        chosen("os > 99")


def test_phones_outside_the_lab_are_skipped_with_the_reason() -> None:
    ancient = phone("ancient", "iPhone14,7", "17.5")
    later = phone("later", "iPhone18,3", "26.0")
    selection = select("all", [ancient, PRO, later])
    assert selection.phones == (PRO,)
    assert [entry.reason for entry in selection.skipped] == [
        "iOS 17.5 has no MLState; iOS 18 or later is needed",
        "iPhone 17 is not an iPhone 14, 15 or 16",
    ]


def test_only_skipped_phones_is_no_phone_and_says_why() -> None:
    with pytest.raises(NoPhoneError, match=r"ancient: iOS 17\.5 has no MLState"):
        select("ancient", [phone("ancient", os="17.5"), PRO])


def test_unlisted_phones_run_when_asked_for() -> None:
    ancient = phone("ancient", os="17.5")
    selection = select("all", [ancient, PRO], include_unlisted=True)
    assert selection.phones == (ancient, PRO)
    assert selection.skipped == ()


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_our_own_errors(text: str) -> None:
    try:
        selection = select(text, ALL)
    except (UsageError, NoPhoneError):
        return
    assert set(selection.phones) <= set(ALL)


words = st.sampled_from(
    ["model", "os", "=", "!=", ">=", "(", ")", "and", "or", "not", "18.5", "iPhone", "'x y'"]
)


@given(st.lists(words, max_size=12).map(" ".join))
def test_any_tokens_are_read_or_refused_at_a_position_in_the_text(text: str) -> None:
    try:
        tree = parse(text)
    except UsageError as error:
        position = int(str(error).split("position ")[1].split(":")[0])
    else:
        assert matches(tree, PRO) in (True, False)
        return
    assert 1 <= position <= len(text) + 1


@given(
    st.tuples(st.integers(0, 99), st.integers(0, 99)),
    st.tuples(st.integers(0, 99), st.integers(0, 99)),
)
def test_versions_compare_as_numbers(have: tuple[int, int], want: tuple[int, int]) -> None:
    one = phone(os=f"{have[0]}.{have[1]}")
    text = f"{want[0]}.{want[1]}"
    assert matches(parse(f"os < {text}"), one) is (have < want)
    assert matches(parse(f"os >= {text}"), one) is (have >= want)
    assert matches(parse(f"os = {text}"), one) is (have == want)


@given(st.sampled_from(ALL), st.sampled_from(["os > 18.9", "tag = lab", "ram_gb = 6"]))
def test_not_turns_an_expression_round(one: Phone, text: str) -> None:
    assert matches(parse(f"not ({text})"), one) is not matches(parse(text), one)
