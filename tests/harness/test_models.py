from __future__ import annotations

import hashlib
import json

import pytest

from orchestrator.harness.models import (
    SELFTEST_LOAD_MS,
    WitnessShape,
    selftest_packages,
    witness_package,
    witness_packages,
)
from tests.harness.standin_process import model_json


def test_the_int4_package_has_the_bytes_of_the_protocol() -> None:
    assert model_json(witness_package("int4")) == (
        b'{"kind":"witness","quantization":"int4","bits_per_weight":4,"weights_bytes":734003200,'
        b'"kv_row_bytes":32768,"capacity":4096,"vocab":32000,"first_id":2,"end_id":0,"bos_id":1,'
        b'"chunk":64}'
    )


def test_a_package_lies_under_the_digest_of_its_content() -> None:
    package = witness_package("int8")
    assert package.digest == hashlib.sha256(model_json(package)).hexdigest()
    assert package.listed() == {
        "quantization": "int8",
        "digest": package.digest,
        "path": f"Documents/models/{package.digest}",
        "kind": "witness",
    }


def test_a_soak_gets_one_package_of_each_quantization() -> None:
    described = [json.loads(model_json(package)) for package in witness_packages()]
    assert [(each["quantization"], each["weights_bytes"]) for each in described] == [
        ("int4", 734_003_200),
        ("int8", 1_395_864_371),
    ]


def test_another_shape_has_another_digest() -> None:
    assert witness_package("int4", WitnessShape(1024)).digest != witness_package("int4").digest


def test_an_unknown_quantization_is_refused() -> None:
    with pytest.raises(ValueError, match="no quantization 'int2'"):
        witness_package("int2")


def test_the_self_tests_packages_say_everything_that_a_check_can_judge() -> None:
    for package in selftest_packages():
        said = json.loads(model_json(package))
        assert (said["text"], said["load_ms"]) == ("pieces", SELFTEST_LOAD_MS)
        groups = {group["group"]: group["device"] for group in said["compute_plan"]}
        assert groups["feed_forward"] == "neural_engine"
        assert package.load_ms == SELFTEST_LOAD_MS


def test_a_soaks_packages_have_no_set_load_time() -> None:
    assert {package.load_ms for package in witness_packages()} == {None}
    assert all(b"compute_plan" not in model_json(package) for package in witness_packages())
