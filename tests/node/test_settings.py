from __future__ import annotations

from pathlib import Path

import pytest

from trainfabric_node.settings import NodeSettings, read_settings
from trainfabric_plan.contract import Role
from trainfabric_plan.errors import InvalidInput

GIVEN = {
    "TRAINFABRIC_ENVIRONMENT": "lab",
    "TRAINFABRIC_ROLE": "worker",
    "TRAINFABRIC_REGION": "us-east-1",
    "TRAINFABRIC_CHECKPOINT_BUCKET": "checkpoints",
}


def test_what_is_not_given_is_as_on_a_real_node() -> None:
    assert read_settings(GIVEN) == NodeSettings(
        environment="lab",
        role=Role.WORKER,
        region="us-east-1",
        checkpoint_bucket="checkpoints",
        rendezvous_port=29400,
        control_port=29401,
        asset_key=None,
        state=Path("/var/lib/trainfabric"),
        metadata_endpoint="http://169.254.169.254",
        placement=0,
        events_queue=None,
    )


def test_a_stand_in_for_a_node_can_lie_elsewhere() -> None:
    more = {
        "TRAINFABRIC_RENDEZVOUS_PORT": "41000",
        "TRAINFABRIC_CONTROL_PORT": "41001",
        "TRAINFABRIC_ASSET_KEY": "abc.zip",
        "TRAINFABRIC_PLACEMENT": "2",
        "TRAINFABRIC_EVENTS_QUEUE": "https://sqs.us-east-1.amazonaws.com/123456789012/notices",
        "TRAINFABRIC_STATE_DIRECTORY": "/elsewhere",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:8000",
    }

    settings = read_settings({**GIVEN, **more})

    assert (settings.rendezvous_port, settings.control_port, settings.asset_key) == (41000, 41001, "abc.zip")
    assert (settings.placement, settings.events_queue) == (2, more["TRAINFABRIC_EVENTS_QUEUE"])
    assert (settings.state, settings.metadata_endpoint) == (
        Path("/elsewhere"),
        "http://127.0.0.1:8000",
    )


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_settings(
            {
                "TRAINFABRIC_ROLE": "boss",
                "TRAINFABRIC_REGION": "x",
                "TRAINFABRIC_RENDEZVOUS_PORT": "0",
                "TRAINFABRIC_CONTROL_PORT": "x",
                "TRAINFABRIC_PLACEMENT": "-1",
            }
        )

    remedy = "correct /etc/trainfabric/node.env, which the user data writes"
    assert str(caught.value).splitlines() == [
        f"node settings: TRAINFABRIC_ENVIRONMENT must be given, got nothing; {remedy}",
        f"node settings: TRAINFABRIC_CHECKPOINT_BUCKET must be given, got nothing; {remedy}",
        f"node settings: TRAINFABRIC_ROLE must be one of coordinator, worker, got boss; {remedy}",
        f"node settings: TRAINFABRIC_RENDEZVOUS_PORT must be a port from 1 to 65535, got 0; {remedy}",
        f"node settings: TRAINFABRIC_CONTROL_PORT must be a port from 1 to 65535, got x; {remedy}",
        f"node settings: TRAINFABRIC_PLACEMENT must be a whole number from 0, got -1; {remedy}",
    ]
