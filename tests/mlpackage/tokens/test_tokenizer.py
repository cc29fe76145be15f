"""Prompts become ids on the host, and ids become the text that the library would give."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.tokens.host import HostTokenizer, load_tokenizer
from orchestrator.mlpackage.tokens.pieces import pieces
from orchestrator.mlpackage.tokens.table import decode_table

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "naïve café, 日本語 and 🙂 in one line\n\tand a tab"


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of the GPT-2 family, trained on a little text."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT, "the the then them"], trainer)
    tokenizer.add_tokens(["<tool>"])
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def loaded(byte_level: Path) -> HostTokenizer:
    return load_tokenizer(byte_level)


def test_text_survives_the_way_through_ids_and_bytes(loaded: HostTokenizer) -> None:
    assert loaded.text(loaded.encode(TEXT)) == TEXT


def test_half_a_character_is_half_its_bytes(loaded: HostTokenizer) -> None:
    ids = loaded.encode("🙂")
    assert b"".join(loaded.table[token] for token in ids) == "🙂".encode()
    assert "�" in loaded.text(ids[:1])


def test_special_ids_give_no_text_and_added_words_do(loaded: HostTokenizer) -> None:
    ids = loaded.encode("a<|end|>b<tool>")
    assert loaded.text(ids) == "ab<tool>"


def test_the_export_is_the_table(loaded: HostTokenizer) -> None:
    assert decode_table(loaded.exported()) == list(loaded.table)
    assert loaded.table[-1] == b"<tool>"


def sentence_piece(**changes: object) -> dict[str, Any]:
    vocab = {"<s>": 0, "<0xE2>": 1, "▁the": 2, "▁": 3, "re": 4}
    return {
        "model": {"type": "BPE", "vocab": vocab},
        "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "Fuse"}]},
    } | changes


def test_sentence_pieces_have_spaces_and_bytes() -> None:
    assert pieces(sentence_piece()) == [b"", b"\xe2", b" the", b" ", b"re"]


def test_a_unigram_vocabulary_is_a_list() -> None:
    model = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.5]]}
    tokenizer = sentence_piece(model=model, added_tokens=[], decoder={"type": "Metaspace"})
    assert pieces(tokenizer) == [b"<unk>", b" a"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"decoder": {"type": "WordPiece"}}, "decodes with WordPiece"),
        ({"decoder": None}, "decodes with nothing"),
        ({"model": {}}, "no vocabulary"),
        ({"model": {"vocab": {"a": "x"}}}, "no vocabulary"),
        ({"model": {"vocab": {"a": 9_000_000}}}, "ids up to 9000000"),
        ({"model": {"vocab": {"a": -1}}}, "ids up to"),
        ({"added_tokens": [7]}, "no vocabulary"),
    ],
)
def test_a_tokenizer_that_cannot_be_exported_says_why(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        pieces(sentence_piece(**changes))


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000])
def test_a_file_that_is_no_tokenizer_is_a_plain_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(UsageError, match="no tokenizer"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_that_the_library_refuses_is_a_plain_error(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(json.dumps(sentence_piece()))
    with pytest.raises(UsageError, match="no tokenizer"):
        load_tokenizer(tmp_path)


def test_a_missing_file_is_a_plain_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no tokenizer"):
        load_tokenizer(tmp_path / "nothing.json")
