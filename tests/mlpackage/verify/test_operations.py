"""Operations and constants of the interpreter against what MIL says they do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orchestrator.mlpackage.build.recipe import Layout
from orchestrator.mlpackage.graph import TensorType, Value
from orchestrator.mlpackage.verify.errors import VerifyError
from orchestrator.mlpackage.verify.expand import expand
from orchestrator.mlpackage.verify.feeds import MASKED, Step, causal_mask
from orchestrator.mlpackage.verify.ops import OPERATIONS, Arguments
from orchestrator.mlpackage.verify.tensors import constant
from tests.mlpackage.encode import message

# Constants in the program itself ask a package for nothing but its name.
NO_PACKAGE: Any = SimpleNamespace(path="some.mlpackage")


def run(kind: str, **values: object) -> np.ndarray:
    result = OPERATIONS[kind](Arguments({name: [value] for name, value in values.items()}))
    assert isinstance(result, np.ndarray)
    return result


def grid(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(np.float16)


def test_slices_honour_masks_strides_and_squeezed_axes() -> None:
    x = grid(4, 6)
    given = {"begin": [1, 0], "end": [3, 0], "end_mask": [False, True], "stride": [1, 2]}
    assert np.array_equal(run("slice_by_index", x=x, **given), x[1:3, ::2])
    squeezed = {"begin": [-1, 0], "end": [0, 6], "squeeze_mask": [True, False]}
    assert np.array_equal(run("slice_by_index", x=x, **squeezed), x[-1])
    assert np.array_equal(run("slice_by_size", x=x, begin=[1, 2], size=[2, -1]), x[1:3, 2:])


def test_an_update_changes_its_range_and_not_its_source() -> None:
    x = grid(3, 4)
    changed = run("slice_update", x=x, update=np.zeros((1, 2)), begin=[1, 1], end=[2, 3])
    assert changed[1].tolist() == [4, 0, 0, 7]
    assert np.array_equal(x, grid(3, 4))


def test_reshape_keeps_axes_that_are_zero_and_infers_one() -> None:
    assert run("reshape", x=grid(2, 6), shape=[0, 3, -1]).shape == (2, 3, 2)


def test_softmax_of_large_fp16_values_is_finite() -> None:
    x = np.array([[6e4, 0, -6e4]], np.float16)
    assert run("softmax", x=x, axis=-1).tolist() == [[1.0, 0.0, 0.0]]


def test_fused_attention_is_the_written_out_one() -> None:
    draws = np.random.default_rng(3)
    q, k, v = (draws.standard_normal((1, 2, 5, 8)).astype(np.float16) for _ in range(3))
    mask = np.where(np.tri(5), np.float16(0), MASKED)
    fused = run("scaled_dot_product_attention", query=q, key=k, value=v, attn_mask=mask)
    scores = q.astype(np.float32) @ k.astype(np.float32).swapaxes(-1, -2) / np.sqrt(8) + mask
    assert np.allclose(fused, run("softmax", x=scores, axis=-1) @ v, atol=1e-3)


def test_products_are_summed_in_fp32() -> None:
    x = np.full((1, 4096), 1, np.float16)
    assert run("linear", x=x, weight=x).tolist() == [[4096.0]]
    assert run("matmul", x=x, y=x, transpose_y=True).tolist() == [[4096.0]]


def test_a_palette_per_group_of_rows_is_looked_up() -> None:
    indices = np.array([[0, 1], [1, 0], [0, 0], [1, 1]], np.uint8)
    lut = np.array([[10, 11], [20, 21]], np.float16).reshape(2, 1, 2, 1)
    dense = expand("constexpr_lut_to_dense", Arguments({"indices": [indices], "lut": [lut]}))
    assert dense.tolist() == [[10, 11], [11, 10], [20, 20], [21, 21]]


def test_palettes_that_vary_on_two_axes_are_looked_up() -> None:
    indices = np.zeros((2, 4), np.uint8)
    lut = np.arange(4, dtype=np.float16).reshape(2, 2, 1, 1)
    dense = expand("constexpr_lut_to_dense", Arguments({"indices": [indices], "lut": [lut]}))
    assert dense.tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]


def test_blocks_are_scaled_and_shifted() -> None:
    bound: dict[str, list[Any]] = {
        "data": [np.array([[1, 2, 3, 4]], np.int8)],
        "scale": [np.array([[2, 10]], np.float16)],
        "offset": [np.array([[1, 0]], np.int8)],
    }
    dense = expand("constexpr_blockwise_shift_scale", Arguments(bound))
    assert dense.tolist() == [[0, 2, 30, 40]]


def test_an_unknown_compression_is_named() -> None:
    with pytest.raises(VerifyError, match="constexpr_odd"):
        expand("constexpr_odd", Arguments({}))


@pytest.mark.parametrize(
    ("dtype", "raw", "wanted"),
    [
        ("int4", b"\x7f\x08", [-1, 7, -8]),
        ("uint4", b"\x7f\x08", [15, 7, 8]),
        ("uint2", b"\xe4", [0, 1, 2]),
        ("uint1", b"\x05", [1, 0, 1]),
        ("int8", b"\xff\x01\x80", [-1, 1, -128]),
        ("uint3", b"\xd1\x00", [1, 2, 3]),
    ],
)
def test_narrow_integers_are_unpacked_from_the_lowest_bit(
    dtype: str, raw: bytes, wanted: list[int]
) -> None:
    tensor = message((1, message((7, message((1, raw))))))
    value = Value(TensorType(dtype, (3,)), None, tensor)
    found = constant(NO_PACKAGE, value)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == wanted


def test_a_constant_of_the_wrong_size_is_an_error_of_the_package() -> None:
    tensor = message((1, message((7, message((1, b"\0\0\0\0"))))))
    with pytest.raises(VerifyError, match="a constant of"):
        constant(NO_PACKAGE, Value(TensorType("fp16", (3,)), None, tensor))


def test_a_mask_shows_a_token_itself_and_what_is_before() -> None:
    mask = causal_mask(Step("prefill", 2, 2, 2), 6, Layout.SEPARATE)[0, 0]
    assert (mask == 0).astype(int).tolist() == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0]]
    host = causal_mask(Step("prefill", 2, 2, 2), 4, Layout.HOST_STATE)[0, 0]
    assert (host == 0).astype(int).tolist() == [[1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 1, 1]]
