from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.seaweed import Seaweed, running_seaweed
from trainfabric_node.store import Store, open_store

BUCKET = "tests"


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    """A real S3 of its own for this session."""
    with running_seaweed(tmp_path_factory.mktemp("weed")) as server:
        server.make_bucket(BUCKET)
        yield server


@pytest.fixture
def s3_uri(seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty prefix, with the environment that leads boto3 to it.

    All tests share one bucket: SeaweedFS takes volumes of their own for every bucket, and runs out of them.
    """
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture(params=["posix", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, once on a disk and once in S3."""
    if request.param == "posix":
        return open_store(f"file://{tmp_path}/store")
    return open_store(request.getfixturevalue("s3_uri"))
