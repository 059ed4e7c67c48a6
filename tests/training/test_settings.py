from __future__ import annotations

from pathlib import Path

import pytest

from trainfabric_plan.errors import InvalidInput
from trainfabric_training.settings import (
    LaunchSettings,
    RankSettings,
    enter_epoch,
    prepare_launcher,
    prepare_ranks,
    read_launch_settings,
)


def test_a_node_tells_its_launcher_where_things_are() -> None:
    variables = {
        "TRAINFABRIC_STATE_DIRECTORY": "/state",
        "TRAINFABRIC_RENDEZVOUS_PORT": "29500",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.2:80",
    }

    assert read_launch_settings(variables) == LaunchSettings(
        state=Path("/state"), rendezvous_port=29500, metadata_endpoint="http://127.0.0.2:80"
    )
    assert read_launch_settings({}) == LaunchSettings(
        state=Path("/var/lib/trainfabric"), rendezvous_port=29400, metadata_endpoint="http://169.254.169.254"
    )


def test_a_port_that_is_none_is_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_launch_settings({"TRAINFABRIC_RENDEZVOUS_PORT": "99999"})

    assert str(caught.value) == (
        "node settings: TRAINFABRIC_RENDEZVOUS_PORT must be a port from 1 to 65535, got 99999; "
        "correct /etc/trainfabric/node.env, which the user data writes"
    )


def test_a_launcher_computes_on_one_thread_unless_told_and_asks_nvml_for_cuda() -> None:
    variables: dict[str, str] = {}
    told = {"OMP_NUM_THREADS": "8"}

    prepare_launcher(variables)
    prepare_ranks(cpu=True, variables=variables)
    prepare_launcher(told)
    prepare_ranks(cpu=False, variables=told)

    always = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TORCHDYNAMO_DISABLE": "1"}
    assert variables == {"OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", **always}
    assert told == {"OMP_NUM_THREADS": "8", **always}


def test_an_epoch_adds_its_variables_to_those_of_the_launcher() -> None:
    variables = {"HOME": "/root", "AWS_DEFAULT_REGION": "eu-west-1"}

    enter_epoch({"AWS_DEFAULT_REGION": "us-east-1"}, variables)

    assert variables == {"HOME": "/root", "AWS_DEFAULT_REGION": "us-east-1", "TORCH_ELASTIC_WORKER_IDENTICAL": "1"}


def test_a_rank_can_share_its_store_with_other_runs() -> None:
    settings = RankSettings(rank=1, world_size=2, host="10.0.0.1", port=29400)

    assert settings.in_store("a.1/ranks").store_prefix == "a.1/ranks"
    assert settings.store_prefix is None
