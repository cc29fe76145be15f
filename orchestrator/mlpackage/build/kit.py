"""Builds the kit of a model: its packages, twin and goldens in one folder, listed in `kit.json`.

Chunk by chunk, so that the weights of a large model are in memory once and only for one chunk.
"""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.build import forward
from orchestrator.mlpackage.build.chunks import CHUNK_LIMIT_BYTES, PREFILL, parts_of
from orchestrator.mlpackage.build.constants import Drawn
from orchestrator.mlpackage.build.decoder import build_function
from orchestrator.mlpackage.build.goldens import canary_prompts, golden_entry, goldens_document
from orchestrator.mlpackage.build.progress import Progress
from orchestrator.mlpackage.build.recipe import PART_KEY, RECIPE_KEY
from orchestrator.mlpackage.build.saving import write_package
from orchestrator.mlpackage.build.twin import TwinWriter
from orchestrator.mlpackage.digest import folder_digest

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.build.chunks import Chunk, Part
    from orchestrator.mlpackage.build.coreml import Mil
    from orchestrator.mlpackage.build.goldens import Json
    from orchestrator.mlpackage.build.recipe import Layout, Recipe

KIT_FILE: Final = "kit.json"
GOLDENS_FILE: Final = "goldens.json"
TWIN_FILE: Final = "weights.safetensors"
LENGTH_KEY: Final = "fleet.max_length"
_TENSORS_A_LAYER: Final = 9
_STEPS_A_PACKAGE: Final = 3


@dataclass(frozen=True, slots=True)
class BuiltPackage:
    """One package of a kit."""

    path: Path
    digest: str
    size_bytes: int
    functions: tuple[str, ...]
    chunk: int  # from 1
    chunks: int

    def listed(self) -> dict[str, Json]:
        """Return its entry in `kit.json`."""
        return {
            "path": self.path.name,
            "digest": self.digest,
            "bytes": self.size_bytes,
            "functions": list(self.functions),
            "chunk": self.chunk,
            "chunks": self.chunks,
        }


@dataclass(frozen=True, slots=True)
class Kit:
    """What a build made."""

    folder: Path
    name: str
    weights: str
    layout: str
    packages: tuple[BuiltPackage, ...]
    files: tuple[str, ...]  # beside the packages


def build_kit(
    mil: Mil,
    recipe: Recipe,
    layout: Layout,
    folder: Path,
    progress: Progress | None = None,
    *,
    chunk_limit_bytes: int = CHUNK_LIMIT_BYTES,
) -> Kit:
    """Build a decoder model; equal arguments give equal bytes.

    Args:
        mil: What `coreml.load` returned.
        recipe: The model.
        layout: How it is packaged.
        folder: Where the kit goes; made if missing, packages in it are replaced.
        progress: Told of every tensor and package.
        chunk_limit_bytes: Most bytes of a package, for models that are cut into chunks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = parts_of(recipe, layout, chunk_limit_bytes=chunk_limit_bytes)
    progress = progress or Progress()
    progress.total = _TENSORS_A_LAYER * recipe.layers + 3 + _STEPS_A_PACKAGE * len(parts) + 1
    builder = _Builder(mil, recipe, folder, progress)
    with TwinWriter(folder / TWIN_FILE, recipe) as builder.twin:
        for chunk in dict.fromkeys(part.chunk for part in parts):
            builder.chunk(chunk, [part for part in parts if part.chunk == chunk])
    write_json(folder / GOLDENS_FILE, goldens_document(recipe, builder.golden_entries))
    kit = Kit(
        folder, recipe.name, recipe.weights.value, layout.value, tuple(builder.packages),
        (GOLDENS_FILE, TWIN_FILE),
    )  # fmt: skip
    write_kit(kit, json.loads(recipe.as_json()))
    return kit


def write_kit(kit: Kit, recipe: Json) -> None:
    """Write `kit.json`."""
    document: dict[str, Json] = {
        "name": kit.name,
        "weights": kit.weights,
        "layout": kit.layout,
        "recipe": recipe,
        "packages": [package.listed() for package in kit.packages],
        "files": list(kit.files),
    }
    write_json(kit.folder / KIT_FILE, document)


def write_json(file: Path, document: dict[str, Json]) -> None:
    """Write a document in one fixed form."""
    file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def built_package(path: Path, part: Part) -> BuiltPackage:
    """Return a package that was just saved, with its digest."""
    size_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    chunk = part.chunk
    return BuiltPackage(
        path, folder_digest(path), size_bytes, part.functions, chunk.number, chunk.of
    )


@dataclass(slots=True)
class _Builder:
    mil: Mil
    recipe: Recipe
    folder: Path
    progress: Progress
    twin: TwinWriter | None = None
    packages: list[BuiltPackage] = field(default_factory=list)
    golden_entries: list[Json] = field(default_factory=list)
    prompts: list[forward.Sequence32] = field(default_factory=list)

    def chunk(self, chunk: Chunk, parts: list[Part]) -> None:
        """Build the packages of a chunk and run the canaries through its layers."""
        drawn = Drawn(self.recipe, lambda: self.progress.step("weights"))
        for part in parts:
            self._package(drawn, part)
        self._canaries(drawn, chunk)
        self._write_twin(drawn, chunk)

    def _package(self, drawn: Drawn, part: Part) -> None:
        functions = {role: build_function(self.mil, drawn, part, role) for role in part.functions}
        self.progress.step(f"{part.name}: graph")
        path = self.folder / f"{part.name}.mlpackage"
        write_package(self.mil, functions, path, package_metadata(self.recipe, part))
        self.progress.step(f"{part.name}: written")
        self.packages.append(built_package(path, part))
        # The operations of a graph refer to each other: without this the next one comes on top.
        del functions
        gc.collect()
        self.progress.step(f"{part.name}: digest")

    def _canaries(self, drawn: Drawn, chunk: Chunk) -> None:
        if chunk.has_embedding:
            self.prompts = [forward.embed(drawn, ids) for ids in canary_prompts(self.recipe)]
        forward.run_layers(drawn, chunk.layers, self.prompts)
        if chunk.has_head:
            self.golden_entries = [
                golden_entry(prompt, forward.logits(drawn, prompt)) for prompt in self.prompts
            ]
        self.progress.step("goldens")

    def _write_twin(self, drawn: Drawn, chunk: Chunk) -> None:
        if self.twin is None:
            return
        if chunk.has_embedding:
            self.twin.add("embed_tokens", drawn.table("embed_tokens"))
            for name, table in zip(("rope_cos", "rope_sin"), drawn.rope(), strict=True):
                self.twin.add(name, table)
        for layer in chunk.layers:
            for name in (f"l{layer}_ln1", f"l{layer}_ln2"):
                self.twin.add(name, drawn.gain(name))
            for name in self.recipe.layer_shapes():
                self.twin.add(f"l{layer}_{name}", drawn.matrix(layer, name))
        if chunk.has_head:
            self.twin.add("ln_f", drawn.gain("ln_f"))
            self.twin.add("lm_head", drawn.table("lm_head"))


def package_metadata(recipe: Recipe, part: Part) -> dict[str, str]:
    """Return what a package says of itself."""
    widths = [recipe.chunk if role == PREFILL else 1 for role in part.functions]
    return {
        RECIPE_KEY: recipe.as_json(),
        PART_KEY: part.as_json(),
        LENGTH_KEY: str(recipe.length),
        "fleet.widths": ",".join(map(str, widths)),
    }
