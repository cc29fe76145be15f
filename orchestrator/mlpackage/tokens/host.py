"""Tokenizes prompts on the host with the `tokenizers` library, and exports the phone's table."""

from __future__ import annotations

import importlib
import importlib.util
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.errors import UsageError
from orchestrator.domain.extras import how_to_install
from orchestrator.mlpackage.tokens.pieces import pieces
from orchestrator.mlpackage.tokens.table import encode_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SIZE_LIMIT_BYTES: Final = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class HostTokenizer:
    """The tokenizer of a model, on the host."""

    path: Path
    table: tuple[bytes, ...]  # the bytes of every id
    _library: Any

    def encode(self, prompt: str) -> list[int]:
        """Return the ids of a prompt, with the special ids that the model's template adds."""
        ids: list[int] = self._library.encode(prompt).ids
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """Return the text that ids give on the phone: bytes joined, then UTF-8."""
        known = (self.table[token] for token in ids if 0 <= token < len(self.table))
        return b"".join(known).decode(errors="replace")

    def exported(self) -> bytes:
        """Return the content of `tokens.table`."""
        return encode_table(self.table)


def load_tokenizer(path: Path) -> HostTokenizer:
    """Read a `tokenizer.json`, or the one in a folder.

    Raises:
        UsageError: If it cannot be read, or the `[models]` extra is missing.
    """
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        if file.stat().st_size > _SIZE_LIMIT_BYTES:
            raise UsageError(f"{file}: larger than {_SIZE_LIMIT_BYTES} bytes")
        text = file.read_text(encoding="utf-8")
        parsed = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: no tokenizer: {error}") from error
    if not isinstance(parsed, dict):
        raise UsageError(f"{file}: no tokenizer: not an object")
    if importlib.util.find_spec("tokenizers") is None:
        raise UsageError(
            "the library tokenizers is not installed",
            remedy=f"Install it: {how_to_install('models')}",
        )
    table = tuple(pieces(parsed))
    library = importlib.import_module("tokenizers")
    try:
        tokenizer = library.Tokenizer.from_str(text)
    except Exception as error:
        raise UsageError(f"{file}: no tokenizer: {error}") from error
    return HostTokenizer(file, table, tokenizer)
