from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.lab import Lab, lab, settled

NODES = 4


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A job of four nodes that has been training for some steps; every test breaks it, none ends it."""
    with lab(tmp_path_factory.mktemp("faults"), nodes=NODES) as made:
        made.start("--checkpoint-every", "2")
        made.wait_for_step_beyond(3)
        yield made


@pytest.fixture
def running(broken: Lab) -> Iterator[Lab]:
    """The same, whole again before the test, and without processes that outlived their node after it."""
    with settled(broken, NODES) as made:
        yield made
