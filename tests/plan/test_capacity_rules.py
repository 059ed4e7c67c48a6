"""What an environment file may say together about buying nodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.plan.account_facts import SPOT_ALONE
from trainfabric_plan.capacity import are_too_many_for_a_block, partial_ultraserver
from trainfabric_plan.catalog import INSTANCE_TYPES

BLOCK = {"fleet.workers": "capacity_block", "fleet.reservation": "cr-0123456789abcdef0"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fleet.workers": "capacity_block"},
            "demo.yaml: fleet.reservation must be given for workers capacity_block, got nothing; "
            "add its id (aws ec2 describe-capacity-reservations lists them)",
        ),
        (
            {"fleet.reservation": "cr-0123456789abcdef0"},
            "demo.yaml: fleet.reservation must be given only with workers capacity_block, reservation or "
            "interruptible_reservation, got cr-0123456789abcdef0 with workers spot; "
            "remove it, or set fleet.workers to what it is",
        ),
        (
            {**BLOCK, "fleet.placement_group_name": "ours"},
            "demo.yaml: fleet.placement_group_name must be left out for workers capacity_block: a block has its place, "
            "got ours; remove it; it names the group that a reservation was made in",
        ),
        (
            {**BLOCK, "fleet.nodes": 65},
            "demo.yaml: fleet.nodes must be at most the 64 instances of one Capacity Block, spares included, got 65; "
            "use fewer nodes, or another way to buy them",
        ),
        (
            {
                "fleet.instance_type": "p6e-gb200.36xlarge",
                "fleet.workers": "on_demand",
                "fleet.ami_id": "ami-0123456789abcdef0",
            },
            "demo.yaml: fleet.instance_type must be a type that starts in a cluster placement group while fleet.efa is "
            "on, got p6e-gb200.36xlarge, of which it is not known (no source says whether it starts in a cluster "
            "placement group; the nodes of an UltraServer stand together anyway); buy it with fleet.workers: "
            "capacity_block, or run `trainfabric catalog refresh --region R` where the type is offered",
        ),
        (
            {"fleet.instance_type": "hpc7a.96xlarge"},
            "demo.yaml: fleet.workers must be a way in which EC2 sells hpc7a.96xlarge: on-demand, got spot; "
            "choose one of these, or another instance type",
        ),
        (
            {**BLOCK, "fleet.instance_type": "g6e.48xlarge"},
            "demo.yaml: fleet.workers must be a way in which EC2 sells g6e.48xlarge: on-demand, spot, "
            "got capacity_block; choose one of these, or another instance type",
        ),
        (
            {"fleet.efa": False, "fleet.max_nodes_per_group": 2},
            "demo.yaml: fleet.max_nodes_per_group must be left out without EFA: no placement group is made, got 2; "
            "remove fleet.max_nodes_per_group",
        ),
        (
            {"fleet.nodes": 80, "fleet.max_nodes_per_group": 2},
            "demo.yaml: fleet.max_nodes_per_group must be such that 80 nodes stand in at most 39 placement groups, "
            "got 2, which makes 40; use 3 or more",
        ),
        (
            {"fleet.control_instance_type": "m7i.large"},
            "demo.yaml: fleet.control_instance_type must be given only for coordinator control, got m7i.large; "
            "remove it, or set fleet.coordinator: control",
        ),
        (
            {"fleet.prepared_image": True},
            "demo.yaml: fleet.prepared_image must be false for the default image, which has neither the Python "
            "environment nor the Lustre client, got true; add fleet.ami_id, or remove fleet.prepared_image",
        ),
    ],
)
def test_what_ec2_does_not_accept_together_is_refused(
    mistakes: Callable[[dict[str, Any]], list[str]], changes: dict[str, Any], message: str
) -> None:
    assert mistakes(changes) == [message]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fleet.instance_type": "x9.large"},
            "demo.yaml: fleet.coordinator must be bought in a way in which EC2 sells x9.large: spot, got on_demand, as "
            "the coordinator is beside workers spot; set fleet.coordinator: control, or buy all nodes in one of these "
            "ways",
        ),
        (
            {"fleet.coordinator": "control", "fleet.control_instance_type": "x9.large"},
            "demo.yaml: fleet.control_instance_type must be bought in a way in which EC2 sells x9.large: spot, got "
            "on_demand, as the coordinator is beside workers spot; choose another type, such as m7i.large",
        ),
    ],
)
def test_a_coordinator_that_cannot_be_had_on_demand_is_refused(
    mistakes: Callable[[dict[str, Any]], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trainfabric.catalog.json").write_text(json.dumps({"format": 1, "instance_types": {"x9.large": SPOT_ALONE}}))

    assert mistakes(changes) == [message]


GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/ours"


@pytest.mark.parametrize(
    "elsewhere", [GROUP.replace("us-east-1", "eu-west-1"), GROUP.replace("arn:aws:", "arn:aws-cn:")]
)
def test_a_group_of_reservations_of_another_region_or_partition_is_refused(mistakes: Any, elsewhere: str) -> None:
    assert mistakes({"fleet.workers": "reservation", "fleet.reservation": elsewhere}) == [
        "demo.yaml: fleet.reservation must be a resource group in us-east-1 of partition aws, "
        f"got {elsewhere}; use a group of that region"
    ]


@pytest.mark.parametrize("name", ["", "x" * 256, "größer", "a\nb"])
def test_a_placement_group_whose_name_ec2_would_not_take_is_refused(mistakes: Any, name: str) -> None:
    reserved = {"fleet.workers": "reservation", "fleet.reservation": "cr-0123456789abcdef0"}

    assert mistakes({**reserved, "fleet.placement_group_name": name}) == [
        f"demo.yaml: fleet.placement_group_name must be text that matches ^[ -~]{{1,255}}$, got {name!r}"
    ]


def test_a_block_of_ultraservers_is_not_held_to_the_instances_of_a_block_of_instances() -> None:
    assert not are_too_many_for_a_block(INSTANCE_TYPES["trn2u.48xlarge"], 96)
    assert not are_too_many_for_a_block(INSTANCE_TYPES["p6e-gb200.36xlarge"], 72)
    assert are_too_many_for_a_block(INSTANCE_TYPES["trn2.48xlarge"], 65)
    assert not are_too_many_for_a_block(INSTANCE_TYPES["trn2.48xlarge"], 64)


def test_nodes_that_do_not_fill_ultraservers_leave_some_of_them_idle() -> None:
    assert partial_ultraserver(INSTANCE_TYPES["p6e-gb200.36xlarge"], 16) == (
        "p6e-gb200.36xlarge comes in UltraServers of 9 or 18 nodes, and 16 nodes leave 2 of them idle, which are paid "
        "for: use 18 nodes or spares, if the block has them"
    )
    for name, nodes in (("p6e-gb200.36xlarge", 27), ("trn2u.48xlarge", 8), ("p5.48xlarge", 7)):
        assert partial_ultraserver(INSTANCE_TYPES[name], nodes) is None
