from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.supervisor.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A run to be; nothing of it may be left after the test."""
    made = Lab(tmp_path)
    try:
        yield made
    finally:
        made.close()
