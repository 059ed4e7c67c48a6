"""What a node is told by its environment; the one place of the package that reads environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainfabric_plan.contract import CONTROL_PORT, RENDEZVOUS_PORT, NodeVariable, Paths, Role
from trainfabric_plan.errors import InvalidInput, Mistake

METADATA_ENDPOINT_VARIABLE = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
"""AWS's own variable; the SDKs honour it as well."""

_METADATA_ENDPOINT = "http://169.254.169.254"
_REMEDY = f"correct {Paths.NODE_ENVIRONMENT}, which the user data writes"


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """What supervisor and controller need to know; everything else they read from the job.

    Attributes:
        environment: Name of the deployed environment.
        role: What this node is in the fleet.
        region: AWS region.
        checkpoint_bucket: Bucket of the job records and checkpoints.
        rendezvous_port: TCP port of the rendezvous store on the coordinator.
        control_port: TCP port of the controller on the coordinator.
        asset_key: Key of the training asset that the node runs, if it is told.
        state: Directory for runs, logs and caches.
        metadata_endpoint: Address of the instance metadata service.
        placement: Number of the node's placement group; nodes of one number are near each other.
        events_queue: URL of the queue of what EC2 announces about nodes, if there is one.
    """

    environment: str
    role: Role
    region: str
    checkpoint_bucket: str
    rendezvous_port: int
    control_port: int
    asset_key: str | None
    state: Path
    metadata_endpoint: str
    placement: int = 0
    events_queue: str | None = None


def read_settings(variables: Mapping[str, str] | None = None) -> NodeSettings:
    """The settings in these variables, by default those of the process.

    Raises:
        InvalidInput: With every variable that is missing or wrong.
    """
    given = os.environ if variables is None else variables
    mistakes = [*_missing(given), *_wrong(given)]
    if mistakes:
        raise InvalidInput(mistakes)
    return NodeSettings(
        environment=given[NodeVariable.ENVIRONMENT],
        role=Role(given[NodeVariable.ROLE]),
        region=given[NodeVariable.REGION],
        checkpoint_bucket=given[NodeVariable.CHECKPOINT_BUCKET],
        rendezvous_port=int(given.get(NodeVariable.RENDEZVOUS_PORT) or RENDEZVOUS_PORT),
        control_port=int(given.get(NodeVariable.CONTROL_PORT) or CONTROL_PORT),
        asset_key=given.get(NodeVariable.ASSET_KEY) or None,
        state=Path(given.get(NodeVariable.STATE_DIRECTORY) or Paths.STATE),
        metadata_endpoint=given.get(METADATA_ENDPOINT_VARIABLE) or _METADATA_ENDPOINT,
        placement=int(given.get(NodeVariable.PLACEMENT) or 0),
        events_queue=given.get(NodeVariable.EVENTS_QUEUE) or None,
    )


def inherited_variables() -> dict[str, str]:
    """The variables that the ranks inherit from the supervisor."""
    return dict(os.environ)


def _missing(given: Mapping[str, str]) -> list[Mistake]:
    needed = (NodeVariable.ENVIRONMENT, NodeVariable.ROLE, NodeVariable.REGION, NodeVariable.CHECKPOINT_BUCKET)
    return [_mistake(name, "given", "nothing") for name in needed if not given.get(name)]


def _wrong(given: Mapping[str, str]) -> list[Mistake]:
    found, role = [], given.get(NodeVariable.ROLE)
    if role and role not in tuple(Role):
        found.append(_mistake(NodeVariable.ROLE, f"one of {', '.join(Role)}", role))
    for name in (NodeVariable.RENDEZVOUS_PORT, NodeVariable.CONTROL_PORT):
        port = given.get(name)
        if port and not (port.isdecimal() and 0 < int(port) < 65536):
            found.append(_mistake(name, "a port from 1 to 65535", port))
    placement = given.get(NodeVariable.PLACEMENT)
    if placement and not placement.isdecimal():
        found.append(_mistake(NodeVariable.PLACEMENT, "a whole number from 0", placement))
    return found


def _mistake(name: str, rule: str, got: str) -> Mistake:
    return Mistake(where="node settings", name=name, rule=rule, got=got, remedy=_REMEDY)
