"""`fleet model tokens`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def tokens(
    tokenizer: Annotated[Path, typer.Argument(help="tokenizer.json, or a folder that has one.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the id-to-bytes table for the phone here.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Print the ids of this prompt, as JSON.")
    ] = None,
) -> None:
    """Tokenize on the host and export the table that gives a phone text without a tokenizer.

    Needs the extra [models]. Example: fleet model tokens tokenizer.json --out tokens.table
    """
    import json

    from orchestrator.cli.printing import note
    from orchestrator.mlpackage.tokens.host import load_tokenizer

    if out is None and prompt is None:
        raise typer.BadParameter("give --out, --prompt or both")
    loaded = load_tokenizer(tokenizer)
    if prompt is not None:
        print(json.dumps(loaded.encode(prompt)))
    if out is not None:
        content = loaded.exported()
        out.write_bytes(content)
        note(f"{out}: {len(loaded.table):,} ids, {len(content):,} bytes")
