"""Rules about what runs on the nodes that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections
from trainfabric_plan.errors import NotFound
from trainfabric_plan.layout import layout_problems
from trainfabric_plan.recipes import recipe


def _recipe(given: Sections) -> Iterator[Broken]:
    if given.training and not given.recipe:
        try:
            recipe(given.training.recipe)
        except NotFound as error:
            rule, _, got = str(error).partition("must be ")[2].partition(", got ")
            name, _, hint = got.partition("; ")
            yield {"name": "training.recipe", "rule": rule, "got": name, "remedy": hint or "choose one of these"}


def _ranks(given: Sections) -> Iterator[Broken]:
    if not (given.training and given.instance):
        return
    per_node, accelerators = given.training.ranks_per_node, given.instance.accelerators
    if per_node is None and not accelerators:
        yield {
            "name": "training.ranks_per_node",
            "rule": f"given for {given.instance.name}, which has no accelerators",
            "got": "nothing",
            "remedy": "say how many ranks run on a node",
        }
    if per_node is not None and accelerators and per_node > accelerators:
        yield {
            "name": "training.ranks_per_node",
            "got": str(per_node),
            "rule": f"at most the {accelerators} accelerators of {given.instance.name}",
            "remedy": f"use {accelerators}",
        }


def _layout(given: Sections) -> Iterator[Broken]:
    if not (given.training and given.training.layout and given.fleet and given.recipe):
        return
    per_node = given.training.ranks_per_node or (given.instance.accelerators if given.instance else 0)
    if not per_node:
        return
    for problem in layout_problems(given.training.layout, given.recipe, given.fleet.nodes * per_node):
        yield {"name": "training.layout", "rule": problem.rule, "got": problem.got, "remedy": problem.remedy}


RULES: tuple[Rule, ...] = (_recipe, _ranks, _layout)
