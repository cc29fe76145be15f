"""The decoder as a Core ML graph, written with the MIL builder.

| input | shape | |
|---|---|---|
| `input_ids` | `[1, q]` int32 | first chunk; later chunks take `hidden_in` `[1, q, width]` fp16 |
| `position_ids` | `[q]` int32 | also the rows that are written |
| `causal_mask` | `[1, 1, q, length]` fp16 | 0 or -6e4; `host-state`: `length + q`, new rows last |
| `logit_index` | `[1]` int32 | prefill's last chunk: the row whose logits are wanted |

Output: `logits` `[1, 1, vocab]` of the last chunk, `hidden_out` of the others; with `host-state`
also `k_rows` and `v_rows` `[layers, kv_heads, q, head_dim]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from orchestrator.mlpackage.build.caches import cache_for, state_shapes
from orchestrator.mlpackage.build.chunks import PREFILL
from orchestrator.mlpackage.build.constants import Constants
from orchestrator.mlpackage.build.coreml import Mil, MilObject
from orchestrator.mlpackage.build.recipe import Attention, Layout

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.caches import Cache
    from orchestrator.mlpackage.build.chunks import Part
    from orchestrator.mlpackage.build.constants import Drawn
    from orchestrator.mlpackage.build.recipe import Recipe

Var: TypeAlias = MilObject  # a variable of the graph


def function_inputs(mil: Mil, recipe: Recipe, part: Part, role: str) -> dict[str, MilObject]:
    """Return the placeholders of a function, states last."""
    mb, types = mil.mb, mil.types
    q = recipe.chunk if role == PREFILL else 1
    columns = recipe.length + (q if part.layout is Layout.HOST_STATE else 0)
    inputs: dict[str, MilObject] = {}
    if part.chunk.has_embedding:
        inputs["input_ids"] = mb.TensorSpec((1, q), dtype=types.int32)
    else:
        inputs["hidden_in"] = mb.TensorSpec((1, q, recipe.width), dtype=types.fp16)
    inputs["position_ids"] = mb.TensorSpec((q,), dtype=types.int32)
    inputs["causal_mask"] = mb.TensorSpec((1, 1, q, columns), dtype=types.fp16)
    if role == PREFILL and part.chunk.has_head:
        inputs["logit_index"] = mb.TensorSpec((1,), dtype=types.int32)
    for name, shape in state_shapes(recipe, part).items():
        inputs[name] = mb.StateTensorSpec(shape, dtype=types.fp16)
    return inputs


def build_function(mil: Mil, drawn: Drawn, part: Part, role: str) -> MilObject:
    """Return one function of a package, `decode` or `prefill`."""
    recipe = drawn.recipe
    inputs = function_inputs(mil, recipe, part, role)
    with mil.Function(inputs, opset_version=mil.ct.target.iOS18) as function:
        graph = _Graph(mil, drawn, part, Constants(mil, shared=len(part.functions) > 1))
        function.set_outputs(graph.outputs(dict(function.inputs)))
    return function


@dataclass(frozen=True, slots=True)
class _Step:
    """What all layers of a function share."""

    cos: Var  # [1, 1, q, head_dim]
    sin: Var
    mask: Var  # [1, 1, heads / kv_heads * q, columns]
    cache: Cache


@dataclass(frozen=True, slots=True)
class _Graph:
    mil: Mil
    drawn: Drawn
    part: Part
    constants: Constants

    def outputs(self, inputs: dict[str, Var]) -> list[Var]:
        chunk = self.part.chunk
        step = self._step(inputs)
        x = self._embedding(inputs["input_ids"]) if chunk.has_embedding else inputs["hidden_in"]
        for index, layer in enumerate(chunk.layers):
            x = self._layer(x, layer, index, step)
        if not chunk.has_head:
            return [self.mil.mb.identity(x=x, name="hidden_out"), *step.cache.outputs()]
        return [self._head(x, inputs.get("logit_index")), *step.cache.outputs()]

    def _step(self, inputs: dict[str, Var]) -> _Step:
        mb, recipe = self.mil.mb, self.drawn.recipe
        positions = inputs["position_ids"]
        cos, sin = (
            mb.expand_dims(x=self._rows_of(name, stored, positions), axes=[0, 1])
            for name, stored in zip(("rope_cos", "rope_sin"), self.drawn.rope(), strict=True)
        )
        group = recipe.heads // recipe.kv_heads
        mask = inputs["causal_mask"]
        if group > 1:  # the queries of a group lie one after another: no copy of keys or values
            mask = mb.tile(x=mask, reps=[1, 1, group, 1])
        states = {name: inputs[name] for name in state_shapes(recipe, self.part)}
        cache = cache_for(mb, recipe, self.part.layout, states, self._span(positions))
        return _Step(cos, sin, mask, cache)

    def _span(self, positions: Var) -> tuple[Var, Var]:
        mb = self.mil.mb
        first = mb.slice_by_size(x=positions, begin=[0], size=[1])
        last = mb.slice_by_index(x=positions, begin=[-1], end=[0], end_mask=[True])
        return first, mb.add(x=last, y=np.array([1], np.int32))

    def _rows_of(self, name: str, stored: MilObject, indices: Var) -> Var:
        weight = self.constants.put(name, stored)
        return self.mil.mb.gather(x=weight, indices=indices, axis=0, validate_indices=False)

    def _embedding(self, ids: Var) -> Var:
        return self._rows_of("embed_tokens_weight", self.drawn.table("embed_tokens"), ids)

    def _head(self, x: Var, index: Var | None) -> Var:
        mb = self.mil.mb
        x = self._norm(x, "ln_f")
        if index is not None:
            x = mb.gather(x=x, indices=index, axis=1, validate_indices=False)
        weight = self.constants.put("lm_head_weight", self.drawn.table("lm_head"))
        return mb.linear(x=x, weight=weight, name="logits")

    def _layer(self, x: Var, layer: int, index: int, step: _Step) -> Var:
        mb = self.mil.mb
        attended = self._attention(self._norm(x, f"l{layer}_ln1"), layer, index, step)
        x = mb.add(x=x, y=self._linear(attended, layer, "o"))
        h = self._norm(x, f"l{layer}_ln2")
        gated = mb.mul(x=mb.silu(x=self._linear(h, layer, "gate")), y=self._linear(h, layer, "up"))
        return mb.add(x=x, y=self._linear(gated, layer, "down"))

    def _attention(self, h: Var, layer: int, index: int, step: _Step) -> Var:
        mb, recipe = self.mil.mb, self.drawn.recipe
        queries = self._rotated(self._heads(h, layer, "q", recipe.heads), step)
        keys = self._rotated(self._heads(h, layer, "k", recipe.kv_heads), step)
        values = self._heads(h, layer, "v", recipe.kv_heads)
        all_keys, all_values = step.cache.extend(index, keys, values)
        grouped = mb.reshape(x=queries, shape=[1, recipe.kv_heads, -1, recipe.head_dim])
        mixed = self._mix(grouped, all_keys, all_values, step.mask)
        mixed = mb.reshape(x=mixed, shape=[1, recipe.heads, -1, recipe.head_dim])
        mixed = mb.transpose(x=mixed, perm=[0, 2, 1, 3])
        return mb.reshape(x=mixed, shape=[1, -1, recipe.heads * recipe.head_dim])

    def _mix(self, queries: Var, keys: Var, values: Var, mask: Var) -> Var:
        mb, recipe = self.mil.mb, self.drawn.recipe
        if recipe.attention is Attention.SDPA:
            return mb.scaled_dot_product_attention(
                query=queries, key=keys, value=values, attn_mask=mask
            )
        scaled = mb.mul(x=queries, y=np.float16(1 / math.sqrt(recipe.head_dim)))
        scores = mb.add(x=mb.matmul(x=scaled, y=keys, transpose_y=True), y=mask)
        return mb.matmul(x=mb.softmax(x=scores, axis=-1), y=values)

    def _heads(self, h: Var, layer: int, name: str, count: int) -> Var:
        mb, recipe = self.mil.mb, self.drawn.recipe
        split = mb.reshape(x=self._linear(h, layer, name), shape=[1, -1, count, recipe.head_dim])
        return mb.transpose(x=split, perm=[0, 2, 1, 3])

    def _rotated(self, x: Var, step: _Step) -> Var:
        mb = self.mil.mb
        first, second = mb.split(x=x, num_splits=2, axis=-1)
        turned = mb.concat(values=[mb.mul(x=second, y=np.float16(-1)), first], axis=-1)
        return mb.add(x=mb.mul(x=x, y=step.cos), y=mb.mul(x=turned, y=step.sin))

    def _linear(self, x: Var, layer: int, name: str) -> Var:
        weight = self.constants.put(f"l{layer}_{name}", self.drawn.matrix(layer, name))
        return self.mil.mb.linear(x=x, weight=weight)

    def _norm(self, x: Var, name: str) -> Var:
        mb = self.mil.mb
        mean = mb.reduce_mean(x=mb.mul(x=x, y=x), axes=[-1], keep_dims=True)
        scale = mb.rsqrt(x=mean, epsilon=np.float16(self.drawn.recipe.epsilon))
        return mb.mul(x=mb.mul(x=x, y=scale), y=self.constants.put(name, self.drawn.gain(name)))
