from __future__ import annotations

from collections.abc import Callable

import botocore.loaders
import pytest
from botocore.client import BaseClient

from tests.cli.account.aws import Answer, Aws

_MODELS = botocore.loaders.create_loader()
"""Of all tests: each session of its own would read the models of the services anew."""


@pytest.fixture
def fake_aws(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Answer]], Aws]:
    """Puts an `Aws` with the given answers in the place of AWS."""

    def put(answers: dict[str, Answer]) -> Aws:
        aws = Aws(answers)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setattr(botocore.loaders, "create_loader", lambda *_: _MODELS)
        monkeypatch.setattr(BaseClient, "_make_api_call", lambda *call: aws.call(*call))
        return aws

    return put
