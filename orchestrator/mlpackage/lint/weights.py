"""Rules about weights: precision, palettes and size."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.lint.rule import Level, Rule
from orchestrator.mlpackage.package import constants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orchestrator.mlpackage.lint.rule import Subject
    from orchestrator.mlpackage.stored import StoredWeight

GPU_FALLBACK_BYTES: Final = 1_400_000_000
RECLAIM_BYTES: Final = 2_000_000_000

_LISTED: Final = 3


def _boundary(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        ends = {"first": facts.layers.embedding, "last": facts.layers.output}
        for side, weights in ends.items():
            compressed = [weight for weight in weights if weight.is_compressed]
            if compressed:
                yield f"{facts.function.name}: {side} layer is compressed: {_listed(compressed)}"


def _tables(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        compressed = [weight for weight in facts.layers.tables if weight.is_compressed]
        if compressed:
            yield f"{facts.function.name}: lookup tables are compressed: {_listed(compressed)}"


def _unexpected_bits(subject: Subject) -> Iterator[str]:
    expected_bits = subject.expected.bits
    if expected_bits is None:
        return
    for facts in subject.functions:
        wrong = [weight for weight in facts.layers.inner if weight.bits != expected_bits]
        if wrong:
            yield (
                f"{facts.function.name}: {len(wrong)} of {len(facts.layers.inner)} inner weights "
                f"are not at {expected_bits} bits: {_listed(wrong)}"
            )


def _mixed_bits(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        counts = Counter(weight.bits for weight in facts.layers.inner)
        if len(counts) > 1:
            described = ", ".join(f"{n} at {bits} bits" for bits, n in sorted(counts.items()))
            yield f"{facts.function.name}: inner weights differ: {described}"


def _lut_axes(subject: Subject) -> Iterator[str]:
    for facts in subject.functions:
        wrong = [weight for weight in facts.weights if weight.lut_axes > 1]
        if wrong:
            yield f"{facts.function.name}: palettes vary along several axes: {_listed(wrong)}"


def _gpu_fallback(subject: Subject) -> Iterator[str]:
    for file, weights in subject.package.weights.items():
        if GPU_FALLBACK_BYTES < weights.size_bytes <= RECLAIM_BYTES:
            yield f"{file} has {weights.size_bytes:,} bytes, more than {GPU_FALLBACK_BYTES:,}"


def _reclaimed(subject: Subject) -> Iterator[str]:
    for file, weights in subject.package.weights.items():
        if weights.size_bytes > RECLAIM_BYTES:
            yield f"{file} has {weights.size_bytes:,} bytes, more than {RECLAIM_BYTES:,}"


def _orphans(subject: Subject) -> Iterator[str]:
    used = {value.blob for _, value in constants(subject.package.model)}
    places = {(blob.file, blob.offset) for blob in used if blob}
    for file, weights in subject.package.weights.items():
        unused = [offset for offset in weights.records if (file, offset) not in places]
        if unused:
            size_bytes = sum(weights.records[offset].size_bytes for offset in unused)
            yield f"{file}: {len(unused)} tensors of {size_bytes:,} bytes are used by no function"


def _listed(weights: Iterable[StoredWeight]) -> str:
    found = [f"{weight.name} ({weight.bits} bits)" for weight in weights]
    rest = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + rest


RULES: Final = (
    Rule(
        "weights.boundary",
        Level.WARNING,
        _boundary,
        "Embedding and output projection at few bits cost more quality than all layers between "
        "them, and they are a small part of a large model's bytes.",
        "apple.github.io/coremltools/docs-guides/source/opt-overview.html (keep sensitive layers)",
        "Compress with --keep fp16:first,last",
    ),
    Rule(
        "weights.tables",
        Level.WARNING,
        _tables,
        "Post-training compression takes position tables too: linear int8 then divides by zero on "
        "the sine row of position 0, and every rotation is poisoned.",
        "measured with coremltools 9.0: `invalid value encountered in divide`, docs/models.md",
        "Compress with --keep fp16:tables",
    ),
    Rule(
        "weights.bits",
        Level.ERROR,
        _unexpected_bits,
        "The memory class gets another quantization than its policy says: 4 bits on 6 GB phones, "
        "8 bits from 8 GB.",
        "this project's contract: quantization by memory class",
        "Compress again with the bits that the policy names",
    ),
    Rule(
        "weights.mixed",
        Level.WARNING,
        _mixed_bits,
        "A layer that the compression left out keeps its full size: the package is larger than "
        "its name says.",
        "apple.github.io/coremltools/docs-guides/source/opt-palettization-api.html (op selection)",
        "Check the size threshold and the list of layers that are kept",
    ),
    Rule(
        "weights.lut-axes",
        Level.WARNING,
        _lut_axes,
        "Palettes that vary along rows and blocks at once fail with error -14, no execution plan.",
        "github.com/apple/coremltools/issues/2325; CoreML-LLM docs/DECODE_STATE_LAYOUTS.md",
        "Group along one axis only",
    ),
    Rule(
        "weights.gpu-fallback",
        Level.WARNING,
        _gpu_fallback,
        "A single package above about 1.4 GB falls back to the GPU without a word: the weights "
        "are then in the footprint, up to 3.8 GB of it.",
        "john-rocky/CoreML-LLM, docs/QWEN35_2B_CHUNKED_HANDOFF.md (one author)",
        "Cut the model in chunks under 1 GB",
    ),
    Rule(
        "weights.reclaim",
        Level.WARNING,
        _reclaimed,
        "Weights over 2 GB are the first that the system takes back in the background, and the "
        "Neural Engine refuses a package of this size long before.",
        "this project's rule; no public measurement of the threshold was found",
        "Cut the model in chunks under 1 GB, and release it in the background",
    ),
    Rule(
        "weights.orphans",
        Level.INFO,
        _orphans,
        "Dead bytes travel to every phone.",
        "this project's rule",
        "Save the package again from its program",
    ),
)
