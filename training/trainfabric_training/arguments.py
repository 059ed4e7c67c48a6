"""The command line of the trainer, checked: what to run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from pydantic import ValidationError

from trainfabric_plan.errors import InvalidInput, Mistake, NotFound, mistake
from trainfabric_plan.layout import Layout, layout_problems
from trainfabric_plan.model import Strict
from trainfabric_plan.planning import Plan
from trainfabric_plan.recipes import Recipe, recipe

_WHERE = "command line"

Value = TypeVar("Value", bound=Strict)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run as it was asked for.

    Attributes:
        recipe: What to train, with the steps that were asked for.
        layout: Degrees of parallelism; one rank for the reference.
        data: Address prefix of the corpus.
        output: Directory for steps, events and the result.
        cache: Where this node keeps what it downloads.
        checkpoints: Address of the job's checkpoints, or `None` to keep none.
        job: Name that checkpoints carry.
        resume: Go on from a commit.
        from_step: Which; the newest if `None`.
        stop_after_step: Stop, with a checkpoint, after this step.
        stop_flag: A file that says, once it appears on any node, when to stop: `now` (or nothing), at the first step
            boundary and with a checkpoint; `checkpoint`, after the next checkpoint that is due anyway.
        nonce: Of the claim that was made for this run in the checkpoint log; `None` if the run is to make its own.
        rank_files: Directory for beats and ends of the ranks of this node, if they are to be told.
        beat_s: Seconds between two beats of a rank.
        reference: Train without DeepSpeed, in one process.
        device: auto, cpu or cuda.
    """

    recipe: Recipe
    layout: Layout
    data: str
    output: Path
    cache: Path
    checkpoints: str | None
    job: str
    resume: bool
    from_step: int | None
    stop_after_step: int | None
    stop_flag: Path | None
    nonce: str | None
    rank_files: Path | None
    beat_s: float
    reference: bool
    device: str


def read_request(arguments: Sequence[str], world_size: int) -> Request:
    """The run that these arguments ask for.

    Raises:
        InvalidInput: With every argument that is wrong by itself or with the others.
        NotFound: If the recipe or a file does not exist.
    """
    given = _parser().parse_args(arguments)
    plan = None if given.plan is None else _read(given.plan, Plan, "--plan")
    chosen = _recipe(given.recipe)
    if given.steps is not None:
        chosen = chosen.model_copy(update={"steps": given.steps})
    mistakes = list(_mistakes(given, plan, chosen, world_size))
    if mistakes:
        raise InvalidInput(mistakes)
    return Request(
        recipe=chosen,
        layout=Layout() if given.reference or plan is None else plan.layout,
        data=given.data,
        output=given.output,
        cache=given.cache or given.output / "cache",
        checkpoints=given.checkpoints,
        job=given.job,
        resume=given.resume or given.from_step is not None,
        from_step=given.from_step,
        stop_after_step=given.stop_after_step,
        stop_flag=given.stop_flag,
        nonce=given.nonce,
        rank_files=given.rank_files,
        beat_s=given.beat_seconds,
        reference=given.reference,
        device=given.device,
    )


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are told once for all ranks, as all others are."""

    def error(self, message: str) -> NoReturn:
        raise mistake(_WHERE, "arguments", "as --help describes them", message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m trainfabric_training",
        description="Train a recipe in the layout of a plan. Start one process per rank with torchrun or srun.",
        epilog="Exit status: 0 done, 75 stopped in order, to go on with --resume, 1 failed, "
        "2 something in the input is wrong.",
    )
    parser.add_argument("--recipe", required=True, metavar="NAME|FILE", help="name of a recipe, or its JSON file")
    parser.add_argument("--plan", type=Path, metavar="FILE", help="plan as JSON")
    parser.add_argument("--data", required=True, metavar="URI", help="s3://bucket/prefix or path of the corpus")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="for steps, events and the result")
    parser.add_argument(
        "--checkpoints", metavar="URI", help="s3://bucket/prefix/ or directory; none are kept if not given"
    )
    parser.add_argument("--job", default="training", metavar="NAME", help="name that checkpoints carry")
    parser.add_argument("--steps", type=int, metavar="N", help="optimizer steps instead of the recipe's")
    parser.add_argument("--resume", action="store_true", help="go on from the newest commit")
    parser.add_argument("--from-step", type=int, metavar="N", help="go on from the commit of this step")
    parser.add_argument("--stop-after-step", type=int, metavar="N", help="stop there, with a checkpoint")
    parser.add_argument(
        "--stop-flag", type=Path, metavar="FILE", help="stop once it exists: now, or as it says at the next checkpoint"
    )
    parser.add_argument("--nonce", metavar="NONCE", help="claim that this run commits under, if one was made for it")
    parser.add_argument("--rank-files", type=Path, metavar="DIR", help="for beats and ends of this node's ranks")
    parser.add_argument("--beat-seconds", type=float, default=2.0, metavar="S", help="between two beats of a rank")
    parser.add_argument("--reference", action="store_true", help="one process, plain PyTorch, no checkpoints")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="for downloads, shared by the ranks of a node")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: CUDA if there is any")
    return parser


def _recipe(name: str) -> Recipe:
    return _read(Path(name), Recipe, "--recipe") if name.endswith(".json") else recipe(name)


def _read(path: Path, kind: type[Value], option: str) -> Value:
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"{_WHERE}: {option} must be an existing file, got {path}; correct the path") from None
    except OSError as error:
        raise mistake(_WHERE, option, "a readable file", f"{path} ({error.strerror})") from None
    except ValidationError as error:
        raise InvalidInput(
            Mistake(where=str(path), name=".".join(map(str, one["loc"])) or "the file", rule="valid", got=one["msg"])
            for one in error.errors()
        ) from None


def _mistakes(given: argparse.Namespace, plan: Plan | None, chosen: Recipe, world_size: int) -> Iterator[Mistake]:
    yield from _number_mistakes(given)
    if given.reference:
        yield from _reference_mistakes(given, chosen, world_size)
    elif plan is None:
        yield _mistake("--plan", "given without --reference", None, "write one with trainfabric plan --json")
    else:
        yield from _plan_mistakes(plan, chosen, world_size)
    for option in ("resume", "from_step", "stop_flag", "stop_after_step", "nonce"):
        if getattr(given, option) and given.checkpoints is None:
            name = f"--{option.replace('_', '-')}"
            yield _mistake(name, "given with --checkpoints", "none", "say where the checkpoints are")


def _number_mistakes(given: argparse.Namespace) -> Iterator[Mistake]:
    for option in ("steps", "from_step", "stop_after_step"):
        value = getattr(given, option)
        if value is not None and value < 1:
            yield _mistake(f"--{option.replace('_', '-')}", "at least 1", value, None)
    if not given.beat_seconds > 0:
        yield _mistake("--beat-seconds", "above 0", given.beat_seconds, None)


def _reference_mistakes(given: argparse.Namespace, chosen: Recipe, world_size: int) -> Iterator[Mistake]:
    if world_size != 1:
        yield _mistake("number of ranks", "1 with --reference", world_size, "start it without torchrun")
    if chosen.precision != "fp32":
        remedy = "use a recipe with precision fp32"
        yield _mistake("--recipe", "one in fp32 with --reference", f"{chosen.name} in {chosen.precision}", remedy)
    if given.checkpoints is not None:
        yield _mistake("--checkpoints", "left out with --reference", given.checkpoints, "the reference keeps none")


def _plan_mistakes(plan: Plan, chosen: Recipe, world_size: int) -> Iterator[Mistake]:
    if world_size != plan.ranks:
        nodes = f"{plan.nodes} nodes × {plan.ranks_per_node}"
        remedy = "start as many processes as the plan has ranks, or plan for these"
        yield _mistake("number of ranks", f"the plan's {plan.ranks} ({nodes})", world_size, remedy)
    if chosen.name != plan.recipe:
        yield _mistake("--recipe", f"the plan's {plan.recipe}", chosen.name, "plan for this recipe")
    for problem in layout_problems(plan.layout, chosen, plan.ranks):
        yield _mistake("layout of --plan", problem.rule, problem.got, problem.remedy)


def _mistake(name: str, rule: str, got: object, remedy: str | None) -> Mistake:
    return Mistake(where=_WHERE, name=name, rule=rule, got=None if got is None else str(got), remedy=remedy)
