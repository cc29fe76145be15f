"""Writes the `tiny` preset's weights, for engines without Core ML.

`python -m tests.benchmarks.tiny_weights OUT`
"""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.mlpackage.build.constants import Drawn
from orchestrator.mlpackage.build.recipe import TINY
from orchestrator.mlpackage.build.twin import TwinWriter


def write_tiny_weights(path: Path) -> None:
    """Write `weights.safetensors` of the preset, 4-bit palettes, without coremltools."""
    drawn = Drawn(TINY)
    with TwinWriter(path, TINY) as twin:
        twin.add("embed_tokens", drawn.table("embed_tokens"))
        for name, table in zip(("rope_cos", "rope_sin"), drawn.rope(), strict=True):
            twin.add(name, table)
        for layer in range(TINY.layers):
            for name in (f"l{layer}_ln1", f"l{layer}_ln2"):
                twin.add(name, drawn.gain(name))
            for name in TINY.layer_shapes():
                twin.add(f"l{layer}_{name}", drawn.matrix(layer, name))
        twin.add("ln_f", drawn.gain("ln_f"))
        twin.add("lm_head", drawn.table("lm_head"))


if __name__ == "__main__":
    write_tiny_weights(Path(sys.argv[1]))
