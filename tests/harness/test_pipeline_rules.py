"""Rules without vectors: R9 remakes, R12 background, R13 low memory, warnings between turns."""

from __future__ import annotations

import threading

from tests.harness.scripted import Talk


def purposes(talk: Talk, op: str) -> list[str]:
    return [operation["purpose"] for operation in talk.script.named(op)]


def fed(talk: Talk) -> list[tuple[str, list[int]]]:
    return [(each["purpose"], each["ids"]) for each in talk.script.named("predict")]


# A warning with no prediction in flight


def test_a_warning_between_turns_evicts_at_once_and_the_next_turn_starts_from_pin_and_prompt() -> (
    None
):
    talk = Talk(16, pin=1, chunk=8)
    talk.turn([1, 2, 3], [11, 12], limit=2)
    talk.warn()
    talk.script.operations = []
    talk.pipeline.settle()
    (evict,) = talk.script.named("evict")
    assert (evict["phase"], evict["before"], evict["warnings"]) == ("idle", 4, [1])
    talk.turn([4, 5], [13], limit=1)
    assert talk.script.named("turn")[0] == {"op": "turn", "used": [4, 5], "carried": 0}
    assert fed(talk) == [("prompt", [1, 4, 5])]
    assert purposes(talk, "make") == ["resume"]


def test_a_warning_before_any_state_is_not_an_eviction() -> None:
    talk = Talk(16)
    talk.warn()
    assert talk.turn([1, 2], [11], limit=1) == "turn_limit"
    assert talk.script.named("evict") == []


def test_a_warning_after_the_release_belongs_to_no_second_eviction() -> None:
    talk = Talk(16, chunk=8)
    talk.turn([1, 2], [11], limit=1, during={1: talk.warn})
    talk.warn()
    talk.script.operations = []
    talk.pipeline.settle()
    assert talk.script.operations == []


def test_warnings_during_one_prediction_belong_to_one_eviction() -> None:
    talk = Talk(16, chunk=8)

    def twice() -> None:
        talk.warn()
        talk.warn()

    talk.turn([1, 2], [11], limit=1, during={1: twice})
    (evict,) = talk.script.named("evict")
    assert evict["warnings"] == [1, 2]
    assert evict["phase"] == "prefill"


def test_a_warning_raised_after_a_sample_evicts_before_the_turn_goes_on() -> None:
    talk = Talk(16, chunk=8)
    talk.script.after_token = lambda token: talk.warn() if token == 12 else None
    talk.turn([1, 2], [11, 12, 13], limit=3)
    names = [operation["op"] for operation in talk.script.operations]
    second_sample = [i for i, name in enumerate(names) if name == "sample"][1]
    assert names[second_sample + 1 : second_sample + 4] == ["breadcrumb", "evict", "drop"]
    assert fed(talk)[-2:] == [("resume", [1, 2, 11]), ("decode", [12])]


# R9


def test_a_reload_feeds_all_rows_again_without_a_notice() -> None:
    talk = Talk(16, chunk=2)
    talk.turn([1, 2, 3], [11, 12], limit=2)
    talk.script.script([], {})
    talk.pipeline.reload()
    assert fed(talk) == [("reload", [1, 2]), ("reload", [3, 11])]
    assert (purposes(talk, "drop"), purposes(talk, "make")) == (["reload"], ["reload"])
    assert talk.script.named("notice") == []


def test_a_warning_during_a_reload_evicts() -> None:
    talk = Talk(16, chunk=2)
    talk.turn([1, 2, 3], [11, 12], limit=2)
    talk.script.script([], {1: talk.warn})
    talk.pipeline.reload()
    assert [evict["before"] for evict in talk.script.named("evict")] == [2]
    assert talk.pipeline.row_count == 0


def test_a_failed_decode_releases_the_state_and_ends_the_turn_with_fault() -> None:
    talk = Talk(16, pin=1, chunk=8)
    assert talk.turn([1, 2], [11, 12], during={2: talk.fail}) == "fault"
    assert talk.script.named("fault") == [{"op": "fault", "code": "nan", "phase": "decode"}]
    assert [evict["reason"] for evict in talk.script.named("evict")] == ["fault"]
    assert len(talk.script.named("notice")) == 1
    talk.turn([4], [13], limit=1)
    assert fed(talk) == [("prompt", [1, 4])]


def test_a_failed_first_chunk_releases_an_empty_state_without_an_eviction() -> None:
    talk = Talk(16, chunk=8)
    assert talk.turn([1, 2], [11], during={1: talk.fail}) == "fault"
    assert (talk.script.named("evict"), purposes(talk, "drop")) == ([], ["evict"])
    assert talk.turn([4], [13], limit=1) == "turn_limit"


def test_a_failed_trim_chunk_still_shows_the_notice_of_the_trim() -> None:
    talk = Talk(4, chunk=8)
    assert talk.turn([1, 2, 3], [11, 12, 13], during={3: talk.fail}) == "fault"
    assert len(talk.script.named("trim")) == 1
    assert len(talk.script.named("notice")) == 1


# R12


def test_leaving_the_foreground_in_decode_releases_the_state_and_resumes_when_back() -> None:
    talk = Talk(16, pin=1, chunk=8)
    returned = threading.Timer(0.05, talk.come_back)

    def leave() -> None:
        talk.leave()
        returned.start()

    assert talk.turn([1, 2], [11, 12, 13], limit=3, during={2: leave}) == "turn_limit"
    returned.join()
    (evict,) = talk.script.named("evict")
    assert (evict["reason"], evict["warnings"], evict["phase"]) == ("background", [], "decode")
    assert purposes(talk, "drop") == ["background"]
    assert fed(talk)[2:] == [("resume", [1, 2, 11]), ("decode", [12])]


def test_no_prediction_runs_in_the_background() -> None:
    talk = Talk(16, chunk=8)
    talk.leave()
    talk.pressure.stop("stopped")
    assert talk.turn([1, 2], [11], limit=1) == "cancelled"
    assert talk.script.named("predict") == []


def test_a_state_kept_between_turns_goes_when_the_app_leaves() -> None:
    talk = Talk(16, chunk=8)
    talk.turn([1, 2], [11], limit=1)
    talk.leave()
    talk.pipeline.settle()
    assert [evict["phase"] for evict in talk.script.named("evict")] == ["idle"]


# R13


def test_low_memory_trims_to_half_the_budget_once_per_episode() -> None:
    talk = Talk(8, chunk=8)
    talk.script.low = True
    talk.turn([1, 2, 3, 4, 5], [11, 12, 13], limit=3)
    (trim,) = talk.script.named("trim")
    assert (trim["reason"], trim["k"], trim["kept"]) == ("low_memory", 1, [2, 3, 4, 5])


def test_low_memory_trims_again_after_it_had_passed() -> None:
    talk = Talk(8, chunk=8)

    def flap(token: int) -> None:
        talk.script.low = token != 12

    talk.script.low = True
    talk.script.after_token = flap
    talk.turn([1, 2, 3, 4, 5], [11, 12, 13, 14], limit=4)
    assert [trim["reason"] for trim in talk.script.named("trim")] == ["low_memory"] * 2


def test_low_memory_does_not_trim_what_a_trim_would_keep_whole() -> None:
    talk = Talk(8, chunk=8)
    talk.script.low = True
    talk.turn([1, 2], [11, 12], limit=2)
    assert talk.script.named("trim") == []


# R2 and R4


def test_a_turn_is_cancelled_before_its_next_chunk_and_keeps_what_it_has() -> None:
    talk = Talk(16, chunk=2)
    during = {1: lambda: talk.pressure.stop("stopped")}
    assert talk.turn([1, 2, 3, 4], [11], during=during) == "cancelled"
    assert talk.pipeline.row_count == 2


def test_the_end_token_wins_over_limit_and_cancellation() -> None:
    talk = Talk(16, chunk=8)
    talk.script.after_token = lambda _: talk.pressure.stop("completed")
    assert talk.turn([1, 2], [0], limit=1) == "end_token"


def test_a_long_first_prompt_is_cut_to_its_pin_and_its_end() -> None:
    talk = Talk(8, pin=2, chunk=8, truncates=True)
    talk.turn(range(1, 21), [31], limit=1)
    assert talk.script.named("turn")[0]["used"] == [1, 2, 15, 16, 17, 18, 19, 20]


def test_a_long_later_prompt_is_cut_to_the_room_beside_the_pin() -> None:
    talk = Talk(8, pin=2, chunk=8, truncates=True)
    talk.turn([1, 2, 3], [31], limit=1)
    talk.turn(range(4, 24), [32], limit=1)
    assert talk.script.named("turn")[0] == {
        "op": "turn",
        "used": [18, 19, 20, 21, 22, 23],
        "carried": 0,
    }
    assert talk.script.named("trim")[0]["kept"] == [1, 2]
