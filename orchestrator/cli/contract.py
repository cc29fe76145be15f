"""`fleet contract FILE`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.errors import UsageError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def contract(
    file: Annotated[Path, typer.Argument(help="A vector file, JSON.")],
    witness: Annotated[
        bool, typer.Option("--witness", help="The file holds witness cases; print their tokens.")
    ] = False,
) -> None:
    """Answer a vector file with the traces of the pipeline contract, as JSON.

    What the file says under `expect` or `token` is never read.
    Example: fleet contract tests/vectors/contract_vectors.json
    """
    from orchestrator.verdict.contract import (
        answer_contract,
        answer_witness,
    )

    document = _read(file)
    answer = answer_witness(document) if witness else answer_contract(document)
    print(json.dumps(answer, separators=(",", ":")))


def _read(file: Path) -> object:
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not JSON: {error}") from error
