import pytest

from orchestrator.domain.mixing import mix, probe_rows, prompt_ids, text_piece


def test_mix_is_splitmix64() -> None:
    # First outputs of SplitMix64 seeded with 0 and with its own increment, as published.
    assert mix(0) == 0xE220A8397B1DCDAF
    assert mix(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


def test_probe_rows_stay_inside_the_context() -> None:
    for row_count in (1, 2, 63, 2048):
        rows = probe_rows(row_count, 0xA17251028E4EDC90)
        assert len(rows) == 8
        assert all(0 <= row < row_count for row in rows)


def prompt(seed: int, conversation: int, turn: int) -> list[int]:
    return prompt_ids(seed, conversation, turn, length_range=(3, 9), id_range=(2, 50), bos_id=1)


def test_only_the_first_prompt_of_a_conversation_begins_with_bos() -> None:
    assert prompt(7, 1, 1)[0] == 1
    assert prompt(7, 2, 1)[0] == 1
    assert 1 not in prompt(7, 1, 2)


def test_prompts_are_equal_for_equal_seeds_and_differ_between_turns() -> None:
    assert prompt(7, 1, 2) == prompt(7, 1, 2)
    others = [prompt(8, 1, 2), prompt(7, 2, 2), prompt(7, 1, 3)]
    assert prompt(7, 1, 2) not in others


def test_lengths_and_ids_stay_in_their_ranges() -> None:
    prompts = [prompt(7, conversation, turn) for conversation in (1, 2) for turn in range(2, 40)]
    assert {len(ids) for ids in prompts} == set(range(3, 10))
    assert all(2 <= token < 50 for ids in prompts for token in ids)


def test_pieces_of_any_tokens_join_to_whole_text_and_split_characters() -> None:
    pieces = [text_piece(token, place) for place, token in enumerate((26, 1, 2, 3, 4, 5, 6, 7))]
    assert b"".join(pieces).decode() == "aébc€de😀fgéh"
    for piece in pieces[::2]:
        with pytest.raises(UnicodeDecodeError):
            piece.decode()
