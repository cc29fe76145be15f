import pytest

from orchestrator.runlog.telemetry import MalformedRecordError, Notice, decode_record

LAUNCH = "8d5d9c1e-2f0b-4c8f-9a57-0f1c2b3d4e5f"


def test_a_record_decodes_to_its_kind() -> None:
    line = (
        f'{{"launch":"{LAUNCH}","seq":3,"t_ns":5,"kind":"notice","for_seq":2,"shown":true,'
        '"text":"x","later_field":1}\n'
    )
    assert decode_record(line.encode()) == Notice(
        launch=LAUNCH, seq=3, t_ns=5, for_seq=2, shown=True, text="x"
    )


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"kind":"unknown","launch":"x","seq":1,"t_ns":1}',
        b'{"kind":"notice","launch":"x","seq":"1","t_ns":1,"for_seq":1,"shown":true,"text":""}',
        b'{"kind":"notice","launch":"x","seq":1,"t_ns":1}',
        b"[" * 100_000,
        b'{"kind":"notice","seq":99999999999999999999999999}',
    ],
)
def test_a_line_that_is_no_record_says_why(line: bytes) -> None:
    with pytest.raises(MalformedRecordError):
        decode_record(line)
