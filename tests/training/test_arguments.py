from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import ALL_RANKS, ONE_RANK, SMALL, Workplace, plan_of
from trainfabric_plan.errors import InvalidInput, NotFound
from trainfabric_plan.layout import Layout
from trainfabric_training.arguments import read_request
from trainfabric_training.settings import RankSettings, export, read_settings

Trained = Callable[..., tuple[int, str]]


def test_a_wrong_command_line_is_told_with_exit_status_2(trained: Trained) -> None:
    status, said = trained(layout=ALL_RANKS)

    assert status == 2
    assert said == (
        "command line: number of ranks must be the plan's 8 (1 nodes × 8), got 1; "
        "start as many processes as the plan has ranks, or plan for these\n"
    )


def test_every_mistake_is_told_together(workplace: Workplace, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(plan_of(Layout(tensor=3), "other").model_dump_json())
    arguments = workplace.arguments("x", ONE_RANK, "--plan", str(plan), "--steps", "0", "--resume")

    with pytest.raises(InvalidInput) as caught:
        read_request(arguments, 3)

    assert str(caught.value).splitlines() == [
        "command line: --steps must be at least 1, got 0",
        "command line: --recipe must be the plan's other, got small; plan for this recipe",
        "command line: layout of --plan must be such that tensor divides the 4 attention heads of small, got tensor 3; "
        "use a tensor degree that divides the heads",
        "command line: --resume must be given with --checkpoints, got none; say where the checkpoints are",
    ]


def test_the_reference_is_one_process_in_fp32_without_checkpoints(workplace: Workplace) -> None:
    bf16 = workplace.directory / "bf16.json"
    bf16.write_text(SMALL.model_copy(update={"precision": "bf16"}).model_dump_json())
    arguments = workplace.arguments("x", ONE_RANK, "--reference", "--recipe", str(bf16), "--checkpoints", "/tmp/x")

    with pytest.raises(InvalidInput) as caught:
        read_request(arguments, 2)

    assert str(caught.value).splitlines() == [
        "command line: number of ranks must be 1 with --reference, got 2; start it without torchrun",
        "command line: --recipe must be one in fp32 with --reference, got small in bf16; "
        "use a recipe with precision fp32",
        "command line: --checkpoints must be left out with --reference, got /tmp/x; the reference keeps none",
    ]


def test_a_layout_needs_a_plan(workplace: Workplace) -> None:
    arguments = ["--recipe", "tiny_cpu", "--data", "x", "--output", "y"]

    with pytest.raises(InvalidInput) as caught:
        read_request(arguments, 1)

    assert str(caught.value) == (
        "command line: --plan must be given without --reference; write one with trainfabric plan --json"
    )


def test_a_missing_file_is_named(workplace: Workplace) -> None:
    with pytest.raises(NotFound) as caught:
        read_request(workplace.arguments("x", ONE_RANK, "--plan", "no/plan.json"), 1)

    assert str(caught.value) == ("command line: --plan must be an existing file, got no/plan.json; correct the path")


def test_a_file_that_is_no_plan_is_named_with_what_is_wrong_in_it(workplace: Workplace, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(plan_of(ONE_RANK, "small").model_dump_json().replace('"nodes":1', '"nodes":"one"'))

    with pytest.raises(InvalidInput) as caught:
        read_request(workplace.arguments("x", ONE_RANK, "--plan", str(plan)), 1)

    assert str(caught.value) == f"{plan}: nodes must be valid, got Input should be a valid integer"


def test_an_unknown_recipe_and_an_unknown_option_are_told(trained: Trained) -> None:
    assert trained("--recipe", "tiny_gpu") == (
        2,
        "recipes: recipe must be one of gpt_1b3_4x_p5, tiny_cpu, got tiny_gpu; did you mean tiny_cpu?\n",
    )
    assert trained("--fast") == (
        2,
        "command line: arguments must be as --help describes them, got unrecognized arguments: --fast\n",
    )


def test_steps_replace_those_of_the_recipe(workplace: Workplace) -> None:
    request = read_request(workplace.arguments("x", ONE_RANK, "--steps", "7"), 1)

    assert request.recipe == SMALL.model_copy(update={"steps": 7})


def test_what_belongs_to_an_epoch_is_left_out_by_default(workplace: Workplace) -> None:
    request = read_request(workplace.arguments("x", ONE_RANK), 1)
    of_epoch = read_request(
        workplace.arguments(
            "x",
            ONE_RANK,
            *("--checkpoints", "/c", "--nonce", "abc", "--rank-files", "/ranks", "--beat-seconds", "0.2"),
        ),
        1,
    )

    assert (request.nonce, request.rank_files, request.beat_s) == (None, None, 2.0)
    assert (of_epoch.nonce, of_epoch.rank_files, of_epoch.beat_s) == ("abc", Path("/ranks"), 0.2)


def test_an_epoch_needs_checkpoints_and_a_time_to_beat(workplace: Workplace) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_request(workplace.arguments("x", ONE_RANK, "--nonce", "abc", "--beat-seconds", "0"), 1)

    assert str(caught.value).splitlines() == [
        "command line: --beat-seconds must be above 0, got 0.0",
        "command line: --nonce must be given with --checkpoints, got none; say where the checkpoints are",
    ]


def test_a_corpus_with_more_tokens_than_the_model_is_refused(trained: Trained, workplace: Workplace) -> None:
    small = workplace.recipe(
        SMALL.model_copy(
            update={"model": SMALL.model.model_copy(update={"vocabulary": 60}), "learning_rate": 0.1, "steps": 3}
        )
    )

    status, said = trained("--recipe", str(small))

    assert status == 2
    assert said == (
        f"{workplace.corpus}: vocabulary of the corpus must be at most the 60 entries of the model, got 70; "
        "prepare the corpus with the recipe's vocabulary\n"
    )


def test_a_process_without_a_launcher_is_alone() -> None:
    assert read_settings({}) == RankSettings(rank=0, world_size=1, local_rank=0, local_size=1, host=None, port=0)


def test_torchrun_tells_a_rank_its_place() -> None:
    variables = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}

    settings = read_settings({**variables, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "2000"})

    assert settings == RankSettings(rank=5, world_size=8, local_rank=1, local_size=2, host="10.0.0.1", port=2000)


def test_srun_tells_a_rank_its_place_and_the_job_tells_the_port() -> None:
    variables = {
        "SLURM_PROCID": "5",
        "SLURM_NTASKS": "8",
        "SLURM_LOCALID": "1",
        "SLURM_STEP_TASKS_PER_NODE": "2(x4)",
        "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1",
        "SLURM_JOB_ID": "123456",
    }

    settings = read_settings(variables)

    assert settings == RankSettings(rank=5, world_size=8, local_rank=1, local_size=2, host="10.0.0.1", port=23456)


def test_a_launcher_that_names_no_meeting_place_is_refused() -> None:
    variables = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}

    with pytest.raises(InvalidInput) as caught:
        read_settings(variables)

    assert str(caught.value) == (
        "environment: MASTER_ADDR and MASTER_PORT must be given, got None:None; "
        "start the processes with torchrun or srun, which set them"
    )


def test_a_launcher_variable_that_is_no_number_is_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_settings({"RANK": "first", "WORLD_SIZE": "8"})

    assert str(caught.value) == (
        "environment: RANK must be a whole number, got first; start the processes with torchrun or srun, which set it"
    )


def test_what_the_engine_reads_from_the_environment_is_set() -> None:
    variables: dict[str, str] = {}

    export(
        RankSettings(rank=5, world_size=8, local_rank=1, local_size=2, host="10.0.0.1", port=2000),
        cpu=True,
        variables=variables,
    )

    assert variables == {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "2000",
        "TORCHDYNAMO_DISABLE": "1",
        "DS_ACCELERATOR": "cpu",
    }
