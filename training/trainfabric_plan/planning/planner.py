"""From an environment to a plan: the layout, what it needs and why."""

from __future__ import annotations

from dataclasses import asdict

from trainfabric_plan.catalog import instance_type
from trainfabric_plan.environment.types import Environment
from trainfabric_plan.errors import InvalidInput, Mistake, mistake
from trainfabric_plan.layout import Layout, accumulation, layout_problems
from trainfabric_plan.model import Strict
from trainfabric_plan.planning.cost import cost_per_hour
from trainfabric_plan.planning.memory import USABLE_SHARE, memory_per_rank
from trainfabric_plan.recipes import Recipe, recipe

_MIB = 1024 * 1024


class Plan(Strict):
    """A layout with what it needs. Computed, never written by hand; nodes read it as JSON.

    `memory_bytes` are the parts of `MemoryPerRank` and their `total`; `reasons` say in words why the layout is so.
    """

    environment: str
    recipe: str
    nodes: int
    ranks_per_node: int
    layout: Layout
    micro_batch: int
    accumulation: int
    global_batch: int
    memory_bytes: dict[str, int]
    accelerator_memory_bytes: int | None
    usd_per_hour: float | None
    usd_per_hour_at_least: float
    reasons: list[str]

    @property
    def ranks(self) -> int:
        """Ranks over all nodes."""
        return self.nodes * self.ranks_per_node

    @property
    def shape(self) -> str:
        """The layout in words."""
        return str(self.layout)

    @property
    def fits(self) -> bool | None:
        """Whether the fullest rank fits the usable share of its accelerator; `None` on nodes without one."""
        return _fits(self.memory_bytes["total"], self.accelerator_memory_bytes)


def make_plan(environment: Environment) -> Plan:
    """The plan of an environment that trains a recipe.

    Raises:
        InvalidInput: If no layout of this recipe fits the nodes, the given layout cannot run on them, or a command runs
            instead of a recipe.
        NotFound: If the recipe or the instance type is unknown.
    """
    chosen_recipe = recipe(_recipe_name(environment))
    instance = instance_type(environment.fleet.instance_type)
    per_node = environment.training.ranks_per_node or instance.accelerators
    ranks = environment.fleet.nodes * per_node
    memory_limit = instance.accelerator_memory_mib * _MIB or None
    given = environment.training.layout
    if given:
        _check(environment, given, chosen_recipe, ranks)
    layout = given or _smallest_model_parallel(environment, chosen_recipe, ranks, per_node, memory_limit)
    memory = memory_per_rank(chosen_recipe, layout)
    cost = cost_per_hour(environment)
    return Plan(
        environment=environment.name,
        recipe=chosen_recipe.name,
        nodes=environment.fleet.nodes,
        ranks_per_node=per_node,
        layout=layout,
        micro_batch=chosen_recipe.micro_batch,
        accumulation=accumulation(chosen_recipe, layout.data),
        global_batch=chosen_recipe.global_batch,
        memory_bytes=memory.by_part(),
        accelerator_memory_bytes=memory_limit,
        usd_per_hour=cost.usd_per_hour,
        usd_per_hour_at_least=cost.at_least_usd_per_hour,
        reasons=_reasons(layout, per_node, given is not None),
    )


def _recipe_name(environment: Environment) -> str:
    if environment.training.recipe is None:
        where, remedy = f"environment {environment.name}", "a command has no layout that could be planned"
        raise mistake(where, "training.recipe", "given", "a command", remedy)
    return environment.training.recipe


def _check(environment: Environment, layout: Layout, chosen: Recipe, ranks: int) -> None:
    problems = list(layout_problems(layout, chosen, ranks))
    if problems:
        raise InvalidInput(
            Mistake(where=f"environment {environment.name}", name="training.layout", **asdict(problem))
            for problem in problems
        )


def _fits(total: int, accelerator_memory: int | None) -> bool | None:
    return None if accelerator_memory is None else total <= accelerator_memory * USABLE_SHARE


def _smallest_model_parallel(
    environment: Environment, chosen: Recipe, ranks: int, per_node: int, limit: int | None
) -> Layout:
    """The layout with the fewest ranks per replica that fits, tensor inside a node before pipeline over nodes."""
    for model_ranks in (n for n in range(1, ranks + 1) if ranks % n == 0):
        for tensor in sorted(
            (t for t in range(1, per_node + 1) if model_ranks % t == 0 and per_node % t == 0), reverse=True
        ):
            layout = Layout(data=ranks // model_ranks, pipeline=model_ranks // tensor, tensor=tensor)
            if any(layout_problems(layout, chosen, ranks)):
                continue
            if _fits(memory_per_rank(chosen, layout).total, limit) is not False:
                return layout
    raise InvalidInput(
        [
            Mistake(
                where=f"environment {environment.name}",
                name="training.recipe",
                rule=f"one with a layout that fits {ranks} ranks of {environment.fleet.instance_type}",
                got=chosen.name,
                remedy="add nodes, choose a type with more accelerator memory, or give training.layout yourself",
            )
        ]
    )


def _reasons(layout: Layout, per_node: int, given: bool) -> list[str]:
    chosen = "given in the environment file" if given else "fewest ranks per replica that fit the accelerator's memory"
    reasons = [f"{layout}: {chosen}"]
    if layout.tensor > per_node:
        reasons.append(f"tensor {layout.tensor} crosses nodes of {per_node} ranks: every layer waits for the network")
    if layout.pipeline > 1:
        reasons.append(
            f"pipeline {layout.pipeline}: ZeRO-1, because DeepSpeed refuses ZeRO-2 and ZeRO-3 with a pipeline"
        )
    return reasons
