"""The operations of a program in NumPy, as far as stateful decoders use them.

Floats are computed in fp32 and stored as the program says, fp16 after every operation: sums are
then as good as the Neural Engine's or better. Meanings: apple.github.io/coremltools, MIL ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.mlpackage.verify.tensors import DTYPES, Array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Arguments:
    """The bound inputs of one operation."""

    values: Mapping[str, list[Any]]

    def array(self, name: str) -> Array:
        """Return a parameter that must be there, fp16 as fp32."""
        value: Array = np.asarray(self.values[name][0])
        return value.astype(np.float32) if value.dtype == np.float16 else value

    def raw(self, name: str) -> Array:
        """Return a parameter that must be there, as stored."""
        return np.asarray(self.values[name][0])

    def numbers(self, name: str) -> list[int]:
        """Return a parameter that holds whole numbers."""
        return [int(number) for number in np.ravel(self.values[name][0])]

    def flag(self, name: str) -> bool:
        """Return a parameter that may be missing, which is false."""
        return name in self.values and bool(np.ravel(self.values[name][0])[0])

    def axis(self) -> int:
        """Return the parameter `axis`."""
        return self.numbers("axis")[0]


def _slices(arguments: Arguments) -> tuple[slice | int, ...]:
    begin, end = arguments.numbers("begin"), arguments.numbers("end")
    rank = len(begin)

    def mask(name: str) -> list[int]:
        return arguments.numbers(name) if name in arguments.values else [0] * rank

    strides = arguments.numbers("stride") if "stride" in arguments.values else [1] * rank
    open_begin, open_end, squeezed = mask("begin_mask"), mask("end_mask"), mask("squeeze_mask")
    return tuple(
        begin[axis]
        if squeezed[axis]
        else slice(
            None if open_begin[axis] else begin[axis],
            None if open_end[axis] else end[axis],
            strides[axis],
        )
        for axis in range(rank)
    )


def _slice_update(arguments: Arguments) -> Array:
    changed = arguments.raw("x").copy()
    changed[_slices(arguments)] = arguments.raw("update")
    return changed


def _slice_by_size(arguments: Arguments) -> Array:
    begin, size = arguments.numbers("begin"), arguments.numbers("size")
    return arguments.raw("x")[
        tuple(
            slice(first, None if count == -1 else first + count)
            for first, count in zip(begin, size, strict=True)
        )
    ]


def _reshape(arguments: Arguments) -> Array:
    x = arguments.raw("x")
    shape = arguments.numbers("shape")
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


def _split(arguments: Arguments) -> list[Array]:
    axis = arguments.axis()
    if "split_sizes" in arguments.values:
        cuts = np.cumsum(arguments.numbers("split_sizes"))[:-1].tolist()
        return list(np.split(arguments.raw("x"), cuts, axis))
    return list(np.split(arguments.raw("x"), arguments.numbers("num_splits")[0], axis))


def _matmul(arguments: Arguments) -> Array:
    x, y = arguments.array("x"), arguments.array("y")
    x = np.swapaxes(x, -1, -2) if arguments.flag("transpose_x") else x
    y = np.swapaxes(y, -1, -2) if arguments.flag("transpose_y") else y
    product: Array = x @ y
    return product


def _linear(arguments: Arguments) -> Array:
    y: Array = arguments.array("x") @ arguments.array("weight").T
    return y + arguments.array("bias") if "bias" in arguments.values else y


def _softmax_of(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    shares: Array = powers / powers.sum(axis=axis, keepdims=True)
    return shares


def _sdpa(arguments: Arguments) -> Array:
    query, key = arguments.array("query"), arguments.array("key")
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(np.float32(query.shape[-1]))
    if "attn_mask" in arguments.values:
        mask = arguments.array("attn_mask")
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    mixed: Array = _softmax_of(scores, -1) @ arguments.array("value")
    return mixed


def _reduce_mean(arguments: Arguments) -> Array:
    axes = tuple(arguments.numbers("axes"))
    mean: Array = arguments.array("x").mean(axis=axes, keepdims=arguments.flag("keep_dims"))
    return mean


def _rsqrt(arguments: Arguments) -> Array:
    epsilon = arguments.array("epsilon") if "epsilon" in arguments.values else np.float32(1e-12)
    root: Array = 1 / np.sqrt(arguments.array("x") + epsilon)
    return root


def _sigmoid_of(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _pairwise(function: Callable[[Array, Array], Any]) -> Callable[[Arguments], Array]:
    return lambda arguments: np.asarray(function(arguments.array("x"), arguments.array("y")))


def _cast(arguments: Arguments) -> Array:
    kind = str(arguments.values["dtype"][0])
    return arguments.raw("x").astype(DTYPES[kind])


def _tile(arguments: Arguments) -> Array:
    return np.tile(arguments.raw("x"), arguments.numbers("reps"))


OPERATIONS: Final[Mapping[str, Callable[[Arguments], Array | list[Array]]]] = {
    "add": _pairwise(np.add),
    "sub": _pairwise(np.subtract),
    "mul": _pairwise(np.multiply),
    "real_div": _pairwise(np.divide),
    "maximum": _pairwise(np.maximum),
    "greater_equal": _pairwise(np.greater_equal),
    "less": _pairwise(np.less),
    "cast": _cast,
    "concat": lambda a: np.concatenate([np.asarray(v) for v in a.values["values"]], a.axis()),
    "expand_dims": lambda a: np.expand_dims(a.raw("x"), tuple(a.numbers("axes"))),
    "gather": lambda a: np.take(a.raw("x"), a.raw("indices").astype(np.int64), axis=a.axis()),
    "identity": lambda a: a.raw("x"),
    "linear": _linear,
    "matmul": _matmul,
    "reduce_mean": _reduce_mean,
    "reshape": _reshape,
    "rsqrt": _rsqrt,
    "scaled_dot_product_attention": _sdpa,
    "select": lambda a: np.where(a.raw("cond"), a.raw("a"), a.raw("b")),
    "sigmoid": lambda a: _sigmoid_of(a.array("x")),
    "silu": lambda a: a.array("x") * _sigmoid_of(a.array("x")),
    "slice_by_index": lambda a: a.raw("x")[_slices(a)],
    "slice_by_size": _slice_by_size,
    "slice_update": _slice_update,
    "softmax": lambda a: _softmax_of(a.array("x"), a.axis()),
    "split": _split,
    "squeeze": lambda a: np.squeeze(a.raw("x"), tuple(a.numbers("axes"))),
    "tile": _tile,
    "transpose": lambda a: np.transpose(a.raw("x"), a.numbers("perm")),
}
