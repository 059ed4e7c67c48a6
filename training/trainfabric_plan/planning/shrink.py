"""The plan of a job on fewer nodes than it asked for."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.layout import Layout, accumulation, layout_problems
from trainfabric_plan.planning.command import CommandPlan
from trainfabric_plan.planning.memory import USABLE_SHARE, memory_per_rank
from trainfabric_plan.planning.planner import Plan
from trainfabric_plan.recipes import Recipe


def shrunk_plan(plan: Plan, recipe: Recipe, nodes: int, minimum_nodes: int | None = None) -> Plan | None:
    """The largest plan of a job that runs on the nodes that are left, or `None` if none does.

    Replicas are dropped first: pipeline and tensor stay, the data degree is the largest that fills whole nodes. Where
    no number of replicas will do, the pipeline changes too, and as many ranks as can be are used. The global batch
    never changes, nor which samples it holds: a data degree that gradient accumulation cannot absorb is not offered.
    ZeRO-1 divides the optimizer's state by the data degree, so memory is worked out anew: it must fit the usable share
    of the accelerator, or be no more than the job's own plan takes.

    Args:
        plan: The job's own plan; with as many nodes as it has, the result.
        recipe: Its recipe.
        nodes: Nodes that could train. The result may use fewer.
        minimum_nodes: Fewest nodes that the result may use; no bound if not given.
    """
    if nodes >= plan.nodes:
        return plan
    fewest = max(1, minimum_nodes or 1)
    layouts = [layout for layout in _layouts(plan, recipe, nodes) if _nodes(plan, layout) >= fewest]
    same_cut = [layout for layout in layouts if layout.pipeline == plan.layout.pipeline]
    best = max(same_cut or layouts, key=lambda layout: (layout.ranks, -layout.pipeline), default=None)
    return None if best is None else _with_layout(plan, recipe, best)


def shrunk_command(plan: CommandPlan, nodes: int) -> CommandPlan | None:
    """The plan of a command on the nodes that are left: all of them, if it runs on so few; else `None`."""
    if nodes >= plan.nodes:
        return plan
    if nodes < plan.minimum_nodes:
        return None
    reason = f"{nodes} of {plan.nodes} nodes are left; the command runs on {plan.minimum_nodes} or more"
    return plan.model_copy(update={"nodes": nodes, "reasons": [reason]})


def _layouts(plan: Plan, recipe: Recipe, nodes: int) -> Iterator[Layout]:
    """Every layout with the plan's tensor degree that fills whole nodes, keeps the batch and fits the memory."""
    tensor = plan.layout.tensor
    for ranks in range(plan.ranks_per_node, nodes * plan.ranks_per_node + 1, plan.ranks_per_node):
        for replica in range(tensor, ranks + 1, tensor):
            if ranks % replica:
                continue
            layout = Layout(data=ranks // replica, pipeline=replica // tensor, tensor=tensor)
            if not any(layout_problems(layout, recipe, ranks)) and _has_room(plan, recipe, layout):
                yield layout


def _has_room(plan: Plan, recipe: Recipe, layout: Layout) -> bool:
    if plan.accelerator_memory_bytes is None:
        return True
    usable = plan.accelerator_memory_bytes * USABLE_SHARE
    return memory_per_rank(recipe, layout).total <= max(usable, plan.memory_bytes["total"])


def _nodes(plan: Plan, layout: Layout) -> int:
    return layout.ranks // plan.ranks_per_node


def _with_layout(plan: Plan, recipe: Recipe, layout: Layout) -> Plan:
    nodes, passes = _nodes(plan, layout), accumulation(recipe, layout.data)
    return plan.model_copy(
        update={
            "nodes": nodes,
            "layout": layout,
            "accumulation": passes,
            "memory_bytes": memory_per_rank(recipe, layout).by_part(),
            "reasons": [
                f"{layout}: the largest layout on {nodes} of {plan.nodes} nodes, in place of {plan.layout}",
                f"global batch {plan.global_batch} stays: accumulation {passes} in place of {plan.accumulation}",
            ],
        }
    )
