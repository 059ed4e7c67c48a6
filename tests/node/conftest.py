from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.seaweed import Seaweed, running_seaweed
from trainfabric_node.store import Store, open_store


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    """A real S3 of its own for this session."""
    with running_seaweed(tmp_path_factory.mktemp("weed")) as server:
        yield server


@pytest.fixture
def s3_bucket(seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a fresh bucket, with the environment that leads boto3 to it."""
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    seaweed.make_bucket(name)
    return name


@pytest.fixture(params=["posix", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, once on a disk and once in S3."""
    if request.param == "posix":
        return open_store(f"file://{tmp_path}/store")
    return open_store(f"s3://{request.getfixturevalue('s3_bucket')}/some/prefix")
