from __future__ import annotations

import pytest

from tests.node.jobs.lab import write_parameter
from trainfabric_node.jobs import connect
from trainfabric_plan.errors import InvalidInput, NotFound, Unreachable


def test_an_environment_that_is_not_deployed_is_not_found(aws: str) -> None:
    with pytest.raises(NotFound) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: environment must be a deployed one, got no parameter /trainfabric/lab/environment in "
        "us-east-1; deploy it first, or correct its name or region"
    )


def test_an_environment_of_another_version_is_refused(aws: str) -> None:
    write_parameter("{}")

    with pytest.raises(InvalidInput) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: /trainfabric/lab/environment must be as this version writes it, got name: field required; "
        "deploy the environment again"
    )


def test_an_embedded_aws_that_is_not_running_is_named(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(Unreachable) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: ssm must answer, got no connection to http://127.0.0.1:9/; the embedded AWS is not running "
        "(make demo starts it), or AWS_ENDPOINT_URL or the network is wrong"
    )


def test_missing_credentials_are_named(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(Unreachable) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: AWS credentials must be given, got none; "
        "set AWS_PROFILE or run aws configure; on a node, check its instance profile"
    )


def test_a_missing_region_is_named(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(Unreachable) as caught:
        connect("lab")

    assert str(caught.value) == (
        "environment lab: AWS region must be given, got none; set AWS_REGION, or give the region of the environment"
    )
