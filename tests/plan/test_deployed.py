from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import DeployedEnvironment, NodeGroup, group_sizes, parse_deployed
from trainfabric_plan.errors import InvalidInput


def group(name: str, role: Role, nodes: int, **more: Any) -> NodeGroup:
    return NodeGroup(name=name, role=role, launch_template=f"lt-{name}", nodes=nodes, **more)


def groups(*, coordinator: int = 1) -> tuple[NodeGroup, ...]:
    """Of seven nodes, or eight, in two placement groups, with two spares."""
    return (
        group("c", Role.COORDINATOR, coordinator),
        group("w", Role.WORKER, 3, spares=1),
        group("w-2", Role.WORKER, 4, spares=1, placement=1),
    )


def environment(*described: NodeGroup, **changes: Any) -> DeployedEnvironment:
    values: dict[str, Any] = {
        "name": "demo",
        "region": "us-east-1",
        "data_bucket": "data",
        "checkpoint_bucket": "checkpoints",
        "lustre_dns_name": "fs",
        "lustre_mount_name": "mount",
        "groups": described,
        "ranks_per_node": 8,
        "asset_bucket": "assets",
        "asset_key": "code.zip",
    }
    return DeployedEnvironment(**{**values, **changes})


@pytest.mark.parametrize(
    ("nodes", "spares", "sizes"),
    [
        (8, 2, {"c": 1, "w": 4, "w-2": 5}),
        (8, 1, {"c": 1, "w": 4, "w-2": 4}),
        (8, 0, {"c": 1, "w": 3, "w-2": 4}),
        (5, 0, {"c": 1, "w": 3, "w-2": 1}),
        (4, 0, {"c": 1, "w": 3, "w-2": 0}),
        (4, 1, {"c": 1, "w": 4, "w-2": 0}),
        (4, 3, {"c": 1, "w": 4, "w-2": 2}),
        (1, 0, {"c": 1, "w": 0, "w-2": 0}),
        (1, 1, {"c": 1, "w": 1, "w-2": 0}),
    ],
)
def test_groups_are_filled_one_after_the_other_and_spares_stand_beside_nodes(
    nodes: int, spares: int, sizes: dict[str, int]
) -> None:
    assert group_sizes(groups(), nodes, spares) == sizes


def test_a_coordinator_that_only_controls_comes_on_top_of_the_nodes() -> None:
    assert group_sizes(groups(coordinator=0), 4, 0) == {"c": 1, "w": 3, "w-2": 1}
    assert group_sizes(groups(coordinator=0), 7, 2) == {"c": 1, "w": 4, "w-2": 5}


def test_what_finds_no_room_is_asked_of_the_last_group_whose_size_refuses_it() -> None:
    assert group_sizes(groups(), 20, 0) == {"c": 1, "w": 4, "w-2": 15}


def test_nodes_and_spares_are_those_of_all_groups() -> None:
    whole, controlled = environment(*groups()), environment(*groups(coordinator=0))

    assert (whole.nodes, whole.spares, whole.coordinator_trains) == (8, 2, True)
    assert (controlled.nodes, controlled.spares, controlled.coordinator_trains) == (7, 2, False)
    assert [one.name for one in whole.worker_groups] == ["w", "w-2"]
    assert whole.group("w-2").placement == 1


@pytest.mark.parametrize(
    "described",
    [
        (),
        groups()[1:],
        (*groups(), groups()[0]),
        (group("c", Role.COORDINATOR, 2),),
    ],
)
def test_there_is_one_coordinator_and_its_group_is_the_first(described: tuple[NodeGroup, ...]) -> None:
    with pytest.raises(ValidationError, match="the first group must be the coordinator's, the others of workers"):
        environment(*described)


def test_what_is_written_is_read_again() -> None:
    written = environment(*groups(), events_queue="https://sqs.us-east-1.amazonaws.com/123456789012/notices")

    assert parse_deployed(written.model_dump_json(), "demo") == written


def test_the_parameter_of_an_older_version_is_refused_with_what_to_do() -> None:
    older = environment(*groups()).model_dump(mode="json", exclude={"groups", "events_queue"})

    with pytest.raises(InvalidInput) as caught:
        parse_deployed(str({**older, "coordinator_group": "c", "worker_group": "w"}).replace("'", '"'), "demo")

    assert str(caught.value) == (
        "environment demo: /trainfabric/demo/environment must be as this version writes it, got groups: field "
        "required; deploy the environment again"
    )


def test_a_parameter_that_is_none_at_all_is_refused_too() -> None:
    with pytest.raises(InvalidInput, match="must be as this version writes it, got invalid json"):
        parse_deployed("", "demo")
