"""Compares every constant of a package with the weight that its recipe's seed gives.

Logits cannot show one wrong weight among a billion; this can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.mlpackage.build.constants import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.mlpackage.build.chunks import Chunk
    from orchestrator.mlpackage.build.draws import Stored
    from orchestrator.mlpackage.verify.subject import Subject
    from orchestrator.mlpackage.verify.tensors import Array

# Of a compressed matrix against the original: root of the mean squares, in units of the original.
# 4 bits on normal weights give about 0.10, 8 bits 0.01.
COMPRESSED_LIMIT: Final = 0.2
_KEPT: Final = ("embed_tokens_weight", "lm_head_weight", "rope_cos", "rope_sin", "ln_f")


def expected_weights(drawn: Drawn, chunk: Chunk) -> Iterator[tuple[str, Callable[[], Stored]]]:
    """Yield the name of every weight that a chunk must have, and how to draw it."""
    if chunk.has_embedding:
        yield "embed_tokens_weight", lambda: drawn.table("embed_tokens")
    yield "rope_cos", lambda: drawn.rope()[0]
    yield "rope_sin", lambda: drawn.rope()[1]
    for layer in chunk.layers:
        for norm in (f"l{layer}_ln1", f"l{layer}_ln2"):
            yield norm, lambda norm=norm: drawn.gain(norm)  # type: ignore[misc]
        for name in drawn.recipe.layer_shapes():
            yield (
                f"l{layer}_{name}",
                lambda layer=layer, name=name: drawn.matrix(layer, name),  # type: ignore[misc]
            )
    if chunk.has_head:
        yield "ln_f", lambda: drawn.gain("ln_f")
        yield "lm_head_weight", lambda: drawn.table("lm_head")


def weight_findings(subject: Subject, *, compressed: bool) -> tuple[int, list[str]]:
    """Return how many weights were compared, and one line per weight that is wrong.

    Args:
        subject: The packages.
        compressed: The matrices were compressed after the build, so they may differ a little;
            embedding, head, tables and gains may not.
    """
    compared, findings = 0, []
    for chunk, interpreter in subject.interpreters():
        file = interpreter.path.name
        present = set(interpreter.weight_names())
        wanted = set()
        for name, draw in expected_weights(Drawn(subject.recipe), chunk):
            wanted.add(name)
            if name not in present:
                findings.append(f"{file}: no weight {name}")
                continue
            compared += 1
            lossy = compressed and name not in _KEPT and "_ln" not in name
            fault = _difference(interpreter.weight(name), draw().dense(), lossy=lossy)
            if fault:
                findings.append(f"{file}: weight {name}: {fault}")
        findings += [
            f"{file}: weight {name} is not of the recipe"
            for name in sorted(present - wanted)
            if np.any(interpreter.weight(name))  # zero biases are the builder's
        ]
    return compared, findings


def _difference(found: Array, wanted: Array, *, lossy: bool) -> str:
    """Return what is wrong with a weight, or an empty text."""
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    if not lossy:
        wrong = int((found != wanted).sum())
        return f"{wrong} of {wanted.size} values differ from the seed's" if wrong else ""
    error = relative_error(found, wanted)
    return f"off by {error:.3f} of its size" if not error <= COMPRESSED_LIMIT else ""


def relative_error(found: Array, wanted: Array) -> float:
    """Return the root of the mean square of a difference, in units of `wanted`'s."""
    exact = wanted.astype(np.float32)
    size = float(np.sqrt(np.mean(exact * exact)))
    error = float(np.sqrt(np.mean((found.astype(np.float32) - exact) ** 2)))
    return error / size if size else error
