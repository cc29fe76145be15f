"""Reference packages: a decoder of the model kit that the Swift app computes on the CPU.

Its weights are random and its tokens prove no rows; what proves it are the kit's goldens, which lie
beside the weights: the app compares its logits with them whenever it loads the model, and does not
go on where they differ (docs/protocol.md, 2.1).
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.errors import UsageError
from orchestrator.harness.models import BITS_PER_WEIGHT, ModelPackage
from orchestrator.mlpackage.build.kit import GOLDENS_FILE, TWIN_FILE
from orchestrator.mlpackage.build.recipe import RECIPE_KEY

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_MOST_HEADER_BYTES: Final = 16 << 20
_QUANTIZATION: Final = {"lut4": "int4", "int4": "int4", "int8": "int8"}


def reference_package(quantization: str, kit: Path) -> ModelPackage:
    """Return the package of a kit's folder.

    Args:
        quantization: What the configuration says it is.
        kit: Holds `weights.safetensors` and `goldens.json`.

    Raises:
        UsageError: If the files are missing or not of a kit, or the weights have another width.
    """
    weights, goldens = kit / TWIN_FILE, kit / GOLDENS_FILE
    make = f"`fleet model build --preset tiny --weights {quantization} --out DIR` makes one"
    try:
        with weights.open("rb") as file:
            recipe = _recipe(file)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        capacity, found = int(recipe["length"]), _QUANTIZATION.get(str(recipe["weights"]))
        if not goldens.is_file():
            raise UsageError(f"model.{quantization}: {goldens} is not there", remedy=make)
    except OSError as error:
        text = f"model.{quantization}: cannot read {weights}: {error.strerror}"
        raise UsageError(text, remedy=make) from error
    except (ValueError, KeyError, TypeError) as error:
        text = f"model.{quantization}: {weights} is no file of the model kit"
        raise UsageError(text, remedy=make) from error
    if found != quantization:
        raise UsageError(
            f"model.{quantization}: the weights of {kit} are {recipe['weights']}", remedy=make
        )
    return ModelPackage(
        quantization,
        digest,
        {TWIN_FILE: weights, GOLDENS_FILE: goldens},
        bits_per_weight=BITS_PER_WEIGHT[quantization],
        capacity=capacity,
        kind="reference",
        has_bos=False,
    )


def _recipe(file: BinaryIO) -> dict[str, Any]:
    """Return the recipe in the header of a safetensors file."""
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= _MOST_HEADER_BYTES:
        raise ValueError("no header")
    recipe = json.loads(json.loads(file.read(length))["__metadata__"][RECIPE_KEY])
    if not isinstance(recipe, dict):
        raise TypeError("the recipe is no object")
    return recipe
