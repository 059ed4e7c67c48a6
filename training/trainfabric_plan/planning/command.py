"""The plan of somebody else's command: how many nodes and ranks it gets, and what they cost. Its layout is its own."""

from __future__ import annotations

from trainfabric_plan.catalog import instance_type
from trainfabric_plan.environment.types import Environment
from trainfabric_plan.model import Strict
from trainfabric_plan.planning.cost import cost_per_hour


class CommandPlan(Strict):
    """What a command runs on. Computed, never written by hand; nodes read it as JSON.

    `reasons` say in words what the numbers follow from.
    """

    environment: str
    command: str
    image: str | None
    nodes: int
    ranks_per_node: int
    minimum_nodes: int
    """Fewest nodes that it runs on."""
    usd_per_hour: float | None
    usd_per_hour_at_least: float
    reasons: list[str]

    @property
    def ranks(self) -> int:
        """Ranks over all nodes, to the command its WORLD_SIZE."""
        return self.nodes * self.ranks_per_node

    @property
    def shape(self) -> str:
        """Nodes and ranks in words."""
        return f"{self.nodes} × {self.ranks_per_node} ranks of a command"


def make_command_plan(environment: Environment) -> CommandPlan:
    """The plan of an environment that runs a command.

    Raises:
        NotFound: If the instance type is unknown.
    """
    fleet, training, cost = environment.fleet, environment.training, cost_per_hour(environment)
    assert training.command is not None
    fewest = environment.fault_tolerance.minimum_nodes or fleet.nodes
    return CommandPlan(
        environment=environment.name,
        command=training.command,
        image=training.image,
        nodes=fleet.nodes,
        ranks_per_node=training.ranks_per_node or instance_type(fleet.instance_type).accelerators,
        minimum_nodes=fewest,
        usd_per_hour=cost.usd_per_hour,
        usd_per_hour_at_least=cost.at_least_usd_per_hour,
        reasons=[_ranks_reason(training.ranks_per_node is not None), _nodes_reason(fewest, fleet.nodes)],
    )


def _ranks_reason(given: bool) -> str:
    return "NPROC_PER_NODE: " + ("given in the environment file" if given else "one per accelerator")


def _nodes_reason(fewest: int, nodes: int) -> str:
    if fewest == nodes:
        return "NNODES is never less: set fault_tolerance.minimum_nodes if the command runs on fewer nodes as well"
    return f"NNODES is from {fewest} to {nodes}, as many as there are: the command adapts itself to it"
