"""What an environment file may say together about buying nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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
