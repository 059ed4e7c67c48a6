from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.node.imds import Imds, running_imds
from trainfabric_node.metadata import InstanceMetadata, SpotAction
from trainfabric_plan.errors import Unreachable


@pytest.fixture
def imds() -> Iterator[Imds]:
    with running_imds() as service:
        yield service


def test_a_node_learns_who_it_is(imds: Imds) -> None:
    metadata = InstanceMetadata(imds.endpoint)

    assert metadata.instance_id() == "i-0123456789abcdef0"
    assert metadata.local_ipv4() == "10.0.0.7"
    assert metadata.instance_type() == "p5.48xlarge"
    assert imds.tokens_given == 1


def test_an_expired_token_is_renewed(imds: Imds) -> None:
    metadata = InstanceMetadata(imds.endpoint)
    metadata.instance_id()
    imds.tokens.clear()

    assert metadata.local_ipv4() == "10.0.0.7"
    assert imds.tokens_given == 2


def test_a_token_is_renewed_before_it_expires(imds: Imds) -> None:
    now = 0.0
    metadata = InstanceMetadata(imds.endpoint, clock=lambda: now)
    metadata.instance_id()
    now = 21000.0
    metadata.instance_id()
    before = imds.tokens_given
    now = 21541.0
    metadata.instance_id()

    assert (before, imds.tokens_given) == (1, 2)


def test_the_image_of_a_node_is_told_if_the_service_tells_it(imds: Imds) -> None:
    metadata = InstanceMetadata(imds.endpoint)
    before = metadata.image_id()
    imds.values["ami-id"] = "ami-0123456789abcdef0"

    assert (before, metadata.image_id()) == (None, "ami-0123456789abcdef0")


def test_a_recommendation_to_replace_the_node_is_told_with_its_time(imds: Imds) -> None:
    metadata = InstanceMetadata(imds.endpoint)
    before = metadata.rebalance()
    imds.values["events/recommendations/rebalance"] = '{"noticeTime": "2026-12-01T08:20:00Z"}'

    assert (before, metadata.rebalance()) == (None, "2026-12-01T08:20:00Z")


@pytest.mark.parametrize("text", ["soon", "{}", "[]"])
def test_a_notice_that_is_none_is_refused(imds: Imds, text: str) -> None:
    imds.values["spot/instance-action"] = text

    with pytest.raises(Unreachable) as caught:
        InstanceMetadata(imds.endpoint).spot_action()

    assert str(caught.value) == (
        f"{imds.endpoint}: instance metadata must answer for spot/instance-action, got '{text}'; "
        "is this an EC2 instance with the metadata service on?"
    )


def test_there_is_no_spot_action_until_there_is_a_notice(imds: Imds) -> None:
    metadata = InstanceMetadata(imds.endpoint)
    before = metadata.spot_action()
    imds.values["spot/instance-action"] = '{"action": "terminate", "time": "2026-12-01T08:22:00Z"}'

    assert before is None
    assert metadata.spot_action() == SpotAction(action="terminate", time="2026-12-01T08:22:00Z")


def test_a_proxy_is_not_asked_for_a_link_local_address(imds: Imds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    assert InstanceMetadata(imds.endpoint).instance_id() == "i-0123456789abcdef0"


def test_a_service_that_is_not_there_is_named() -> None:
    with pytest.raises(Unreachable) as caught:
        InstanceMetadata("http://127.0.0.1:9").instance_id()

    assert str(caught.value) == (
        "http://127.0.0.1:9: instance metadata must answer for instance-id, got [Errno 111] Connection refused; "
        "is this an EC2 instance with the metadata service on?"
    )


def test_a_service_without_an_address_for_the_node_is_refused(imds: Imds) -> None:
    del imds.values["local-ipv4"]

    with pytest.raises(Unreachable) as caught:
        InstanceMetadata(imds.endpoint).local_ipv4()

    assert str(caught.value) == (
        f"{imds.endpoint}: instance metadata must answer for local-ipv4, got 404 not found; "
        "is this an EC2 instance with the metadata service on?"
    )
