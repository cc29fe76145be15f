import pytest

from orchestrator.domain.iphone import (
    CATALOG,
    IPhoneModel,
    by_product_type,
    os_version,
    why_unlisted,
)
from orchestrator.domain.memory_class import GIB, MemoryClass, memory_class_of


@pytest.mark.parametrize(
    ("physical_memory_bytes", "expected"),
    [
        (8_021_032_960, MemoryClass.GB8),  # iPhone16,2 as measured: less than 8 GiB
        (5_917_753_344, MemoryClass.GB6),
        (int(10.0 * GIB), MemoryClass.GB12),
        (int(7.0 * GIB), MemoryClass.GB8),
        (int(7.0 * GIB) - 1, MemoryClass.GB6),
        (int(5.0 * GIB), MemoryClass.GB6),
        (int(5.0 * GIB) - 1, None),
    ],
)
def test_classes_are_bands_that_round_up(
    physical_memory_bytes: int, expected: MemoryClass | None
) -> None:
    assert memory_class_of(physical_memory_bytes) is expected


@pytest.mark.parametrize("model", CATALOG, ids=lambda model: model.model)
def test_the_catalog_agrees_with_the_bands(model: IPhoneModel) -> None:
    assert memory_class_of(model.physical_memory_bytes) is model.memory_class


def test_product_type_generation_is_not_the_marketing_generation() -> None:
    known = by_product_type("iPhone16,1")
    assert known is not None
    assert known.model == "iPhone 15 Pro"
    assert known.generation == 15
    assert known.ram_gb == 8


def test_versions_compare_by_number() -> None:
    assert os_version("18.10") > os_version("18.9")
    assert os_version("18.3.1 beta") == (18, 3)


@pytest.mark.parametrize(
    ("product_type", "os", "reason"),
    [
        ("iPhone17,5", "18.3", None),
        ("iPhone14,7", "18.0", None),
        ("iPhone14,7", "17.6", "iOS 17.6 has no MLState; iOS 18 or later is needed"),
        ("iPhone18,3", "26.0", "iPhone 17 is not an iPhone 14, 15 or 16"),
        ("iPhone18,4", "26.0", "iPhone Air is not an iPhone 14, 15 or 16"),
        ("iPad14,1", "18.5", "iPad14,1 is not an iPhone 14, 15 or 16"),
    ],
)
def test_what_a_soak_does_not_cover_is_named(
    product_type: str, os: str, reason: str | None
) -> None:
    assert why_unlisted(product_type, os) == reason
