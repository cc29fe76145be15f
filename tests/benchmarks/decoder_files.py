"""Writes weights and goldens of a recipe without coremltools, for engines without Core ML.

`python -m tests.benchmarks.decoder_files FOLDER` writes those of the preset `tiny`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.mlpackage.build import forward
from orchestrator.mlpackage.build.constants import Drawn
from orchestrator.mlpackage.build.goldens import canary_prompts, golden_entry, goldens_document
from orchestrator.mlpackage.build.kit import GOLDENS_FILE, TWIN_FILE
from orchestrator.mlpackage.build.recipe import TINY
from orchestrator.mlpackage.build.twin import TwinWriter

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.recipe import Recipe


def write_decoder_files(recipe: Recipe, folder: Path) -> None:
    """Write `weights.safetensors` and `goldens.json`; equal recipes give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = Drawn(recipe)
    _write_weights(drawn, folder / TWIN_FILE)
    prompts = [forward.embed(drawn, ids) for ids in canary_prompts(recipe)]
    forward.run_layers(drawn, range(recipe.layers), prompts)
    entries = [golden_entry(prompt, forward.logits(drawn, prompt)) for prompt in prompts]
    document = goldens_document(recipe, entries)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    (folder / GOLDENS_FILE).write_text(text + "\n", encoding="utf-8")


def _write_weights(drawn: Drawn, path: Path) -> None:
    recipe = drawn.recipe
    with TwinWriter(path, recipe) as twin:
        twin.add("embed_tokens", drawn.table("embed_tokens"))
        for name, table in zip(("rope_cos", "rope_sin"), drawn.rope(), strict=True):
            twin.add(name, table)
        for layer in range(recipe.layers):
            for name in (f"l{layer}_ln1", f"l{layer}_ln2"):
                twin.add(name, drawn.gain(name))
            for name in recipe.layer_shapes():
                twin.add(f"l{layer}_{name}", drawn.matrix(layer, name))
        twin.add("ln_f", drawn.gain("ln_f"))
        twin.add("lm_head", drawn.table("lm_head"))


if __name__ == "__main__":
    write_decoder_files(TINY, Path(sys.argv[1]))
