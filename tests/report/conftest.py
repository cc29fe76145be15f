from __future__ import annotations

from pathlib import Path

import pytest
import xmlschema


@pytest.fixture(scope="session")
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")
