"""What follows from an environment: the layout, memory per rank, cost per hour; and the plan on fewer nodes.

The performance model (step time, interruptions) is not part of this package yet.
"""

from trainfabric_plan.planning.cost import CostPerHour, cost_per_hour
from trainfabric_plan.planning.memory import MemoryPerRank, memory_per_rank
from trainfabric_plan.planning.planner import Plan, make_plan
from trainfabric_plan.planning.shrink import shrunk_plan

__all__ = ["CostPerHour", "MemoryPerRank", "Plan", "cost_per_hour", "make_plan", "memory_per_rank", "shrunk_plan"]
