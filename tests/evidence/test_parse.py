from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evidence.parse import parse_report, parse_reports, without_copies
from orchestrator.evidence.reports import (
    CrashReport,
    ExcResourceReport,
    JetsamReport,
    OtherReport,
    PanicReport,
    Unparsed,
)
from orchestrator.evidence.sections import documents
from tests.evidence.factory import APP, FIXTURES, FUZZ, crash, jetsam, process, report

SAMPLES = [path.read_bytes() for path in sorted(FIXTURES.rglob("*.ips"))] + [crash(), jetsam()]

TEXT_CRASH = b"""{"bug_type":"109","name":"SoakHarness","timestamp":"2020-10-15 17:29:58.79 +0100"}
Incident Identifier: X
Process:             SoakHarness [4040]
Role:                Foreground
Exception Type:  EXC_CRASH (SIGKILL)
Exception Subtype: KERN_INVALID_ADDRESS
Termination Reason: Namespace SPRINGBOARD, Code 0x8badf00d
"""


def victims(content: bytes) -> tuple[str | None, ...]:
    parsed = parse_report(content, "r")
    assert isinstance(parsed, JetsamReport)
    return tuple(victim.name for victim in parsed.victims)


def test_victims_come_in_the_order_of_their_kills() -> None:
    late, early = process("late", killDelta=900), process("early", killDelta=20)
    assert victims(jetsam(process("unknown"), late, early)) == ("early", "late", "unknown")


def test_a_process_without_a_reason_is_no_victim_even_if_it_is_the_largest() -> None:
    largest = {"name": "largest", "rpages": 10**6}
    assert victims(jetsam(largest, process(), largestProcess="largest")) == (APP,)


@pytest.mark.parametrize("entry", [None, 5, "text", [process()], []])
def test_damaged_entries_of_the_process_list_are_counted(entry: object) -> None:
    parsed = parse_report(jetsam(entry, process()), "r")
    assert isinstance(parsed, JetsamReport)
    assert (len(parsed.victims), parsed.damaged_entries) == (1, 1)


@pytest.mark.parametrize(
    ("field", "value", "attribute"),
    [
        ("rpages", "65536", "footprint_bytes"),
        ("rpages", True, "footprint_bytes"),
        ("rpages", -1, "footprint_bytes"),
        ("rpages", 1.5, "footprint_bytes"),
        ("rpages", 10**30, "footprint_bytes"),
        ("states", "frontmost", "foreground"),
        ("pid", {"pid": 1}, "pid"),
        ("name", 7, "name"),
        ("uuid", [], "uuid"),
        ("killDelta", "soon", "kill_delta"),
    ],
)
def test_a_field_of_the_wrong_type_is_missing(field: str, value: object, attribute: str) -> None:
    parsed = parse_report(jetsam(process(**{field: value})), "r")
    assert isinstance(parsed, JetsamReport)
    assert getattr(parsed.victims[0], attribute) is None


@pytest.mark.parametrize("size", [0, -4096, "16384", None, 1 << 40])
def test_an_impossible_page_size_is_replaced_and_marked(size: object) -> None:
    parsed = parse_report(jetsam(process(), memoryStatus={"pageSize": size}), "r")
    assert isinstance(parsed, JetsamReport)
    assert (parsed.page_size_bytes, parsed.page_size_assumed) == (16384, True)


def test_a_jetsam_report_without_processes_cannot_be_read() -> None:
    parsed = parse_report(report("298", {"processes": {}}), "r")
    assert parsed == Unparsed(parsed.header, "no process list")


def test_a_body_without_its_header_line_still_reads() -> None:
    body = jetsam(process(), bug_type="298").partition(b"\n")[2]
    assert victims(body) == (APP,)


def test_the_first_of_several_joined_reports_is_read() -> None:
    assert victims(jetsam(process("first")) + b"\n" + jetsam(process("second"))) == ("first",)


def test_bug_types_may_be_numbers() -> None:
    assert isinstance(parse_report(report(309, {"pid": 1}), "r"), CrashReport)
    assert isinstance(parse_report(report(10**12, {}), "r"), Unparsed)


def test_the_suffix_decides_nothing() -> None:
    assert isinstance(parse_report(crash(), "JetsamEvent-2026.ips"), CrashReport)


def test_a_byte_order_mark_and_raw_line_feeds_in_texts_are_accepted() -> None:
    content = b'\xef\xbb\xbf{"bug_type":"210"}\n{"panicString":"panic(cpu 0)\n  \nmore"}'
    parsed = parse_report(content, "r")
    assert isinstance(parsed, PanicReport)
    assert parsed.first_line == "panic(cpu 0)"


def test_a_panic_without_a_readable_body_still_is_a_panic() -> None:
    assert isinstance(parse_report(b'{"bug_type":"210"}\n{"panicStr', "r"), PanicReport)


def test_text_crashes_read_like_the_others() -> None:
    parsed = parse_report(TEXT_CRASH, "r")
    assert isinstance(parsed, CrashReport)
    assert parsed.watchdog
    assert (parsed.pid, parsed.signal, parsed.namespace) == (4040, "SIGKILL", "SPRINGBOARD")
    assert (parsed.foreground, parsed.message) == (True, "KERN_INVALID_ADDRESS")


def test_text_resource_reports_read_like_the_others() -> None:
    content = TEXT_CRASH.replace(b'"109"', b'"185"').replace(
        b"KERN_INVALID_ADDRESS", b"MEMORY (limit=3376 MB)"
    )
    parsed = parse_report(content, "r")
    assert isinstance(parsed, ExcResourceReport)
    assert (parsed.pid, parsed.resource, parsed.limit_mib) == (4040, "MEMORY", 3376)


def test_a_crash_without_a_body_cannot_be_read_but_tells_whose_it_is() -> None:
    parsed = parse_report(crash().partition(b"\n")[0], "r")
    assert isinstance(parsed, Unparsed)
    assert (parsed.reason, parsed.header.name) == ("no body", APP)


def test_a_slow_quit_is_not_the_watchdog_of_a_hang() -> None:
    reasons = ["explanation: Failed to terminate gracefully after 5.0s"]
    parsed = parse_report(crash(termination={"code": 0x8BADF00D, "reasons": reasons}), "r")
    assert isinstance(parsed, CrashReport)
    assert parsed.stopped_too_slowly


def test_a_thermal_kill_is_known_by_its_code() -> None:
    parsed = parse_report(crash(termination={"code": 0xC00010FF}), "r")
    assert isinstance(parsed, CrashReport)
    assert parsed.reason == "thermal"


@pytest.mark.parametrize("words", ["Fatal error", ["", "Fatal error"], [5, "Fatal error"]])
def test_the_last_words_of_a_process_may_be_a_text_or_a_list(words: object) -> None:
    parsed = parse_report(crash(asi={"empty": [], "libswiftCore.dylib": words}), "r")
    assert isinstance(parsed, CrashReport)
    assert parsed.message == "Fatal error"


def test_half_a_surrogate_pair_does_not_come_through() -> None:
    parsed = parse_report(jetsam(process("a\ud800b", reason="\udfff", states=["\ud801"])), "r")
    assert isinstance(parsed, JetsamReport)
    assert (parsed.victims[0].name, parsed.victims[0].reason) == ("a?b", "?")
    assert parsed.victims[0].states == ("?",)


def test_os_faults_are_no_crashes() -> None:
    parsed = parse_report(report("308", {"exception": {"signal": "SIGABRT"}}), "r")
    assert isinstance(parsed, OtherReport)
    assert parsed.name == "os-fault"


def test_a_readable_copy_wins_over_a_cut_one() -> None:
    whole, cut = parse_report(jetsam(process()), "a"), parse_report(jetsam(process())[:-40], "b")
    assert isinstance(cut, Unparsed)
    assert without_copies([cut, whole]) == [whole]
    assert without_copies([whole, cut]) == [whole]


def test_reports_without_an_incident_are_all_kept() -> None:
    reports = [parse_report(b"", "a"), parse_report(b"", "b")]
    assert without_copies(reports) == reports


@pytest.mark.parametrize(
    "content",
    [
        b"{" * 200_000,
        b'{"bug_type":' + b"[" * 200_000,
        b'{"bug_type":"298"}{"memoryStatus":' + b"9" * 10_000 + b"}",
        b'{"bug_type":"298"}[1]',
        b'{"bug_type":"309"}{"exception":NaN,"termination":Infinity,"pid":NaN}',
        b'{"bug_type":"\\ud800"}',
        b"\xff\xfe{\x00",
        b"\x00" * 64,
        b"no json at all",
        b"[]",
    ],
)
def test_bytes_made_to_hurt_give_a_typed_report(content: bytes) -> None:
    assert parse_report(content, "r").header.file == "r"


@FUZZ
@given(sample=st.sampled_from(SAMPLES), data=st.data())
def test_a_report_cut_at_any_byte_never_raises(sample: bytes, data: st.DataObject) -> None:
    parse_report(sample[: data.draw(st.integers(0, len(sample)))], "r")


@FUZZ
@given(sample=st.sampled_from([s for s in SAMPLES if s]), data=st.data())
def test_a_report_with_flipped_bytes_never_raises(sample: bytes, data: st.DataObject) -> None:
    damaged = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(sample) - 1))] = data.draw(st.integers(0, 255))
    parse_report(bytes(damaged), "r")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
BODIES = st.dictionaries(
    st.sampled_from(
        ["memoryStatus", "processes", "exception", "termination", "asi", "pid", "procRole", "date"]
    ),
    JSON_VALUES | st.fixed_dictionaries({"pageSize": JSON_VALUES, "code": JSON_VALUES}),
)


@FUZZ
@given(bug_type=st.sampled_from(["298", "309", "109", "385", "185", "210", "777"]), body=BODIES)
def test_known_fields_of_any_type_never_raise(bug_type: str, body: dict[str, object]) -> None:
    parse_report(report(bug_type, body), "r")


READABLE = [
    crash(),
    jetsam(process()),
    report("210", {"panicString": "x"}),
    report("777", {"a": 1}),
]


@FUZZ
@given(
    samples=st.lists(st.sampled_from(READABLE), min_size=1, max_size=5),
    glue=st.sampled_from([b"", b"\n", b"\r\n\r\n"]),
)
def test_joined_reports_are_each_read_as_they_are_alone(samples: list[bytes], glue: bytes) -> None:
    alone = [parse_report(sample, "r") for sample in samples]
    assert parse_reports(glue.join(samples), "r") == alone


@FUZZ
@given(samples=st.lists(st.sampled_from(SAMPLES), max_size=4), noise=st.binary(max_size=64))
def test_any_reports_and_noise_in_one_file_give_reports(samples: list[bytes], noise: bytes) -> None:
    found = parse_reports(noise.join(samples), "r")
    assert 1 <= len(found) <= 2 * len(samples) + 64


@FUZZ
@given(
    sample=st.lists(st.sampled_from(SAMPLES), min_size=1, max_size=3).map(b"\n".join),
    length=st.integers(1, 700),
)
def test_where_a_file_is_split_while_it_is_read_changes_nothing(sample: bytes, length: int) -> None:
    chunks = [sample[begin : begin + length] for begin in range(0, len(sample), length)]
    assert list(documents(chunks)) == list(documents([sample]))
