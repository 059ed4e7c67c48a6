"""Rules about what runs on the nodes that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections
from trainfabric_plan.errors import NotFound
from trainfabric_plan.layout import layout_problems
from trainfabric_plan.own_command import IMAGE_RULE, is_pinned_image
from trainfabric_plan.recipes import recipe

_OF_A_COMMAND = ("code", "image", "leave_by")


def _recipe_or_command(given: Sections) -> Iterator[Broken]:
    if not given.training:
        return
    if given.training.recipe is None and given.training.command is None:
        remedy = "add recipe, or command for training code of your own"
        yield {"name": "training.recipe", "rule": "given", "got": "nothing", "remedy": remedy}
    if given.training.recipe is not None and given.training.command is not None:
        yield {
            "name": "training.command",
            "rule": "given only without a recipe",
            "got": f"both it and recipe {given.training.recipe}",
            "remedy": "remove one of them",
        }


def _recipe(given: Sections) -> Iterator[Broken]:
    if given.training and given.training.recipe is not None and not given.recipe:
        try:
            recipe(given.training.recipe)
        except NotFound as error:
            rule, _, got = str(error).partition("must be ")[2].partition(", got ")
            name, _, hint = got.partition("; ")
            yield {"name": "training.recipe", "rule": rule, "got": name, "remedy": hint or "choose one of these"}


def _only_for_a_command(given: Sections) -> Iterator[Broken]:
    if not given.training or given.training.command is not None:
        return
    for key in _OF_A_COMMAND:
        if key in given.training.model_fields_set and getattr(given.training, key) is not None:
            yield {
                "name": f"training.{key}",
                "rule": "given only with a command",
                "got": repr(getattr(given.training, key)),
                "remedy": f"remove training.{key}, or replace training.recipe by training.command",
            }


def _command(given: Sections) -> Iterator[Broken]:
    training = given.training
    if not training or training.command is None:
        return
    if not training.command.strip():
        remedy = "write what every node is to run"
        yield {"name": "training.command", "rule": "a shell command", "got": repr(training.command), "remedy": remedy}
    if training.code is None and training.image is None:
        remedy = "add training.code, a folder, or training.image, a container image"
        yield {
            "name": "training.command",
            "rule": "given with its code",
            "got": "neither code nor image",
            "remedy": remedy,
        }
    if training.layout is not None:
        remedy = "remove training.layout and put the degrees into the command"
        yield {"name": "training.layout", "rule": "left to the command", "got": str(training.layout), "remedy": remedy}
    if given.orchestrator == "parallelcluster":
        yield {
            "name": "training.command",
            "rule": "left out with parallelcluster, where sbatch starts what you submit",
            "got": repr(training.command),
            "remedy": "use orchestrator: fleet",
        }


def _image_and_code(given: Sections) -> Iterator[Broken]:
    image, code = (given.training.image, given.training.code) if given.training else (None, None)
    if image is not None and not is_pinned_image(image):
        remedy = "write it as docker pull takes it, with :TAG or @sha256:…"
        yield {"name": "training.image", "rule": IMAGE_RULE, "got": repr(image), "remedy": remedy}
    if code is not None and not code.strip():
        remedy = "write its path, relative to this file"
        yield {"name": "training.code", "rule": "a folder", "got": repr(code), "remedy": remedy}


def _trainium(given: Sections) -> Iterator[Broken]:
    if not (given.training and given.instance and given.instance.maker == "aws"):
        return
    if given.training.recipe is not None:
        yield {
            "name": "training.command",
            "rule": f"given for {given.instance.name}: the engine of the recipes has no Neuron backend",
            "got": f"recipe {given.training.recipe}",
            "remedy": "replace training.recipe by training.command (docs/own-training-code.md)",
        }
    elif given.training.ranks_per_node is None:
        yield {
            "name": "training.ranks_per_node",
            "rule": f"given for {given.instance.name}: a Trainium chip has several NeuronCores",
            "got": "nothing",
            "remedy": "say how many processes run on a node, such as one per NeuronCore",
        }


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
    own = given.training.command is not None
    if per_node is not None and accelerators and per_node > accelerators and not own:
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


RULES: tuple[Rule, ...] = (
    _recipe_or_command,
    _recipe,
    _only_for_a_command,
    _command,
    _image_and_code,
    _trainium,
    _ranks,
    _layout,
)
