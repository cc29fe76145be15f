"""`fleet schema`: the JSON Schema of `fleet.yaml`, for editors and for checks in CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.config.schema import json_schema
from orchestrator.domain.errors import UsageError
from orchestrator.verdict.catalog import CATALOG

app = typer.Typer(rich_markup_mode=None)


@app.command()
def schema(
    output: Annotated[
        Path | None, typer.Option(help="Write it there instead of printing it.")
    ] = None,
) -> None:
    """Print the JSON Schema of `fleet.yaml`: keys, types, defaults and what they are.

    Editors with a YAML language server complete and check the file once its first line is
    `# yaml-language-server: $schema=fleet.schema.json`. Examples: fleet schema; fleet schema
    --output fleet.schema.json
    """
    text = schema_text()
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from error


def schema_text() -> str:
    """Return the schema as JSON that ends in a newline."""
    limits = {
        check: {limit.name: f"{limit.meaning}, {limit.unit}" for limit in info.limits}
        for check, info in CATALOG.items()
    }
    return json.dumps(json_schema(limits), indent=1, ensure_ascii=False) + "\n"
