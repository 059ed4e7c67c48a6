"""Run by ParallelCluster's own Python: what the package says of whole configuration files, given on stdin.

Reads `{"descriptions": {instance type: EC2's description}, "configurations": {name: configuration}}`, writes
`{name: [[level, message], …]}`: first what its `ClusterSchema` refuses, and if it refuses nothing, what those of its
validators say that look at how nodes are bought and placed and need no account.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from parallelcluster import AWSApi, InstanceTypeInfo  # type: ignore[import-not-found] # puts the absent CDK in place

# isort: split
from marshmallow import ValidationError  # type: ignore[import-not-found]
from pcluster.schemas.cluster_schema import ClusterSchema  # type: ignore[import-not-found]
from pcluster.validators.cluster_validators import (  # type: ignore[import-not-found]
    ComputeResourceSizeValidator,
    EfaPlacementGroupValidator,
)
from pcluster.validators.ec2_validators import (  # type: ignore[import-not-found]
    CapacityTypeValidator,
    InstanceTypePlacementGroupValidator,
    PlacementGroupCapacityTypeValidator,
    PlacementGroupNamingValidator,
)

OF_QUEUES = (CapacityTypeValidator, ComputeResourceSizeValidator, EfaPlacementGroupValidator)
"""Those that a queue registers itself, with arguments of its own."""

Said = list[list[str]]


def judged(configuration: dict[str, Any], descriptions: dict[str, Any]) -> Said:
    try:
        cluster = ClusterSchema(cluster_name="it").load(configuration)
    except ValidationError as error:
        return [["SCHEMA", json.dumps(error.messages, sort_keys=True)]]
    found: Said = []
    for queue in cluster.scheduling.queues:
        for validator, arguments in of_queue(queue, descriptions):
            found += [[result.level.name, result.message] for result in validator().execute(**arguments)]
    return found


def of_queue(queue: Any, descriptions: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Validators with their arguments: those that the queue registers, and as `SlurmClusterConfig` gives them."""
    queue._register_validators()
    yield from ((one, arguments) for one, arguments in queue._validators if one in OF_QUEUES)
    yield PlacementGroupNamingValidator, {"placement_group": queue.networking.placement_group}
    for resource in queue.compute_resources:
        enabled = queue.is_placement_group_enabled_for_compute_resource(resource)
        bought = {"capacity_type": queue.capacity_type, "placement_group_enabled": enabled}
        yield PlacementGroupCapacityTypeValidator, bought
        for name in resource.instance_types:
            placed = {"instance_type": name, "instance_type_data": descriptions[name]}
            yield InstanceTypePlacementGroupValidator, {**placed, "placement_group_enabled": enabled}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    known: dict[str, Any] = given["descriptions"]
    with patch.object(AWSApi, "instance") as api:
        api().ec2.get_instance_type_info = lambda name: InstanceTypeInfo(known[name])
        api().ec2.describe_placement_group = lambda name: {"GroupName": name}
        json.dump({name: judged(one, known) for name, one in given["configurations"].items()}, sys.stdout)
