"""What one token adds to the text, read from a `tokenizer.json`.

Decoding ids one by one does not say it: half a character decodes to U+FFFD. So the bytes are taken
from the vocabulary, in the way that the file's own decoder names. Two forms cover public models:
byte-level BPE (GPT-2, Llama 3, Qwen), whose characters stand for bytes, and SentencePiece (Llama 2,
Gemma), whose `▁` is a space and whose `<0x0A>` is a byte.

Source: github.com/openai/gpt-2 `bytes_to_unicode`; github.com/huggingface/tokenizers, decoders.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SPACE: Final = "\u2581"  # the sign that SentencePiece puts for a space
_BYTE_PIECE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_LARGEST_ID: Final = 4_000_000


def pieces(tokenizer: Mapping[str, Any]) -> list[bytes]:
    """Return the bytes of every id from 0.

    Args:
        tokenizer: The parsed `tokenizer.json`.

    Raises:
        UsageError: If it is not a tokenizer, or its decoder is of a form that is not known.
    """
    to_bytes = _piece_decoder(tokenizer)
    try:
        vocabulary = dict(_vocabulary(tokenizer["model"]["vocab"]))
        added = tokenizer.get("added_tokens") or []
        plain = {
            int(token["id"]): str(token["content"]).encode()
            for token in added
            if not token.get("special")
        }
        special = {int(token["id"]) for token in added if token.get("special")}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"tokenizer.json has no vocabulary that can be read: {error}") from error
    last = max([*vocabulary.values(), *plain, *special], default=-1)
    if not 0 <= last <= _LARGEST_ID or min(vocabulary.values(), default=0) < 0:
        raise UsageError(f"tokenizer.json has ids up to {last}")
    table = [b""] * (last + 1)
    for text, token in vocabulary.items():
        table[token] = to_bytes(text)
    for token, content in plain.items():
        table[token] = content
    for token in special:
        table[token] = b""
    return table


def _vocabulary(vocab: Any) -> Iterator[tuple[str, int]]:  # noqa: ANN401 - JSON
    """Yield text and id: BPE has a map, Unigram a list of text and score."""
    if isinstance(vocab, dict):
        for text, token in vocab.items():
            yield text, int(token)
    else:
        for token, entry in enumerate(vocab):
            yield str(entry[0]), token


def _piece_decoder(tokenizer: Mapping[str, Any]) -> Callable[[str], bytes]:
    kinds = set(_decoder_kinds(tokenizer.get("decoder")))
    if "ByteLevel" in kinds:
        return _byte_level
    if "Metaspace" in kinds or {"Replace", "ByteFallback"} & kinds:
        return _sentence_piece
    raise UsageError(
        f"tokenizer.json decodes with {', '.join(sorted(kinds)) or 'nothing'}",
        remedy="Byte-level BPE and SentencePiece tokenizers can be exported",
    )


def _decoder_kinds(decoder: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(decoder, dict):
        yield str(decoder.get("type"))
        for part in decoder.get("decoders") or []:
            if isinstance(part, dict):
                yield str(part.get("type"))


def _byte_level(text: str) -> bytes:
    # A character that stands for no byte is there as itself, as the library decodes it.
    return b"".join(bytes([_BYTE_OF[char]]) if char in _BYTE_OF else char.encode() for char in text)


def _sentence_piece(text: str) -> bytes:
    byte = _BYTE_PIECE.fullmatch(text)
    if byte is not None:
        return bytes([int(byte[1], 16)])
    return text.replace(_SPACE, " ").encode()


def _bytes_of_characters() -> dict[str, int]:
    """Return GPT-2's alphabet: printable bytes are themselves, the others lie above 255."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in set(printable))
    table = {chr(byte): byte for byte in printable}
    return table | {chr(256 + index): byte for index, byte in enumerate(others)}


_BYTE_OF: Final = _bytes_of_characters()
