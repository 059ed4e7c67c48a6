"""What follows from an environment: the layout, memory per rank, cost per hour; and the plan on fewer nodes.

The performance model (step time, interruptions) is not part of this package yet.
"""

from trainfabric_plan.environment.types import Environment
from trainfabric_plan.planning.command import CommandPlan, make_command_plan
from trainfabric_plan.planning.cost import CostPerHour, cost_per_hour
from trainfabric_plan.planning.memory import MemoryPerRank, memory_per_rank
from trainfabric_plan.planning.planner import Plan, make_plan
from trainfabric_plan.planning.shrink import shrunk_command, shrunk_plan

__all__ = [
    "AnyPlan",
    "CommandPlan",
    "CostPerHour",
    "MemoryPerRank",
    "Plan",
    "cost_per_hour",
    "make_command_plan",
    "make_plan",
    "memory_per_rank",
    "plan_for",
    "shrunk_command",
    "shrunk_plan",
]

AnyPlan = Plan | CommandPlan
"""The plan of a recipe, or of a command."""


def plan_for(environment: Environment) -> AnyPlan:
    """The plan of an environment, whatever it trains; raises what `make_plan` and `make_command_plan` do."""
    return make_plan(environment) if environment.training.command is None else make_command_plan(environment)
