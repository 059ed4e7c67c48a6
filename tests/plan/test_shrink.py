"""A job goes on with fewer nodes: which layout it then has, and when it would rather wait."""

from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.layout import Layout
from trainfabric_plan.planning import Plan, make_plan, memory_per_rank, shrunk_plan
from trainfabric_plan.recipes import Recipe, recipe

TINY, GPT = recipe("tiny_cpu"), recipe("gpt_1b3_4x_p5")


@pytest.fixture
def plan_of(environment_data: Any) -> Any:
    """The plan of the valid environment with these changes."""

    def build(changes: dict[str, Any]) -> Plan:
        return make_plan(validate_environment(environment_data(changes), "demo.yaml"))

    return build


@pytest.fixture
def demo(plan_of: Any) -> Plan:
    """Two replicas of two stages of two ranks, on four nodes of two ranks."""
    made: Plan = plan_of({"training.layout": {"data": 2, "pipeline": 2, "tensor": 2}})
    return made


def plan_for(nodes: int, ranks_per_node: int, layout: Layout, of: Recipe, memory_gib: int | None = None) -> Plan:
    """A plan of the recipe in this layout, whatever catalog and environment would say."""
    return Plan(
        environment="demo",
        recipe=of.name,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        layout=layout,
        micro_batch=of.micro_batch,
        accumulation=of.global_batch // (of.micro_batch * layout.data),
        global_batch=of.global_batch,
        memory_bytes=memory_per_rank(of, layout).by_part(),
        accelerator_memory_bytes=None if memory_gib is None else memory_gib * 1024**3,
        usd_per_hour=None,
        usd_per_hour_at_least=0.0,
        reasons=[],
    )


def shrunk(plan: Plan, of: Recipe, nodes: int, minimum_nodes: int | None = None) -> tuple[int, Layout, int] | None:
    """Nodes, layout and accumulation of the shrunk plan."""
    found = shrunk_plan(plan, of, nodes, minimum_nodes)
    return None if found is None else (found.nodes, found.layout, found.accumulation)


@pytest.mark.parametrize("nodes", [4, 5, 9])
def test_with_all_its_nodes_a_job_has_its_own_plan(demo: Plan, nodes: int) -> None:
    assert shrunk_plan(demo, TINY, nodes) is demo


def test_with_three_of_four_nodes_the_demo_keeps_one_replica_on_two_of_them(demo: Plan) -> None:
    smaller = shrunk_plan(demo, TINY, 3)

    assert smaller is not None
    assert (smaller.nodes, smaller.ranks) == (2, 4)
    assert smaller.layout == Layout(data=1, pipeline=2, tensor=2)
    assert (demo.accumulation, smaller.accumulation) == (4, 8)
    assert smaller.reasons == [
        "data 1 × pipeline 2 × tensor 2: the largest layout on 2 of 4 nodes, "
        "in place of data 2 × pipeline 2 × tensor 2",
        "global batch 16 stays: accumulation 8 in place of 4",
    ]


def test_with_two_of_four_nodes_the_demo_keeps_one_replica(demo: Plan) -> None:
    assert shrunk(demo, TINY, 2) == (2, Layout(data=1, pipeline=2, tensor=2), 8)


def test_where_not_one_replica_fits_the_pipeline_gives_way(demo: Plan) -> None:
    assert shrunk(demo, TINY, 1) == (1, Layout(data=1, pipeline=1, tensor=2), 8)


def test_with_no_node_nothing_fits(demo: Plan) -> None:
    assert shrunk(demo, TINY, 0) is None


@pytest.mark.parametrize(("minimum", "nodes"), [(1, 2), (2, 2), (4, None)])
def test_a_layout_on_fewer_nodes_than_the_policy_allows_is_not_offered(
    demo: Plan, minimum: int, nodes: int | None
) -> None:
    found = shrunk_plan(demo, TINY, 3, minimum)

    assert (None if found is None else found.nodes) == nodes


def test_where_the_policy_allows_no_fewer_than_what_is_left_the_pipeline_gives_way(demo: Plan) -> None:
    assert shrunk(demo, TINY, 3, minimum_nodes=3) == (3, Layout(data=1, pipeline=3, tensor=2), 8)


def test_a_minimum_above_what_is_left_does_not_keep_a_whole_fleet_from_training(demo: Plan) -> None:
    assert shrunk_plan(demo, TINY, 4, minimum_nodes=4) is demo


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # 24 ranks would make micro-batches of 8 × 24 = 192 samples, which do not divide 1024: one node stays aside.
        (3, (2, Layout(data=16), 8)),
        (2, (2, Layout(data=16), 8)),
        (1, (1, Layout(data=8), 16)),
    ],
)
def test_32_way_data_parallel_on_p5_spot_takes_the_largest_degree_that_divides_the_batch(
    plan_of: Any, nodes: int, expected: tuple[int, Layout, int]
) -> None:
    plan = plan_of({"training": {"recipe": "gpt_1b3_4x_p5"}})

    assert (plan.layout, plan.accumulation) == (Layout(data=32), 4)
    assert shrunk(plan, GPT, nodes) == expected


def test_a_batch_that_every_degree_divides_uses_every_node() -> None:
    divisible = GPT.model_copy(update={"global_batch": 8 * 32 * 3})
    plan = plan_for(4, 8, Layout(data=32), divisible, memory_gib=80)

    assert shrunk(plan, divisible, 3) == (3, Layout(data=24), 4)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_the_samples_of_a_step_are_as_many_as_before(demo: Plan, nodes: int) -> None:
    smaller = shrunk_plan(demo, TINY, nodes)

    assert smaller is not None
    assert smaller.micro_batch * smaller.layout.data * smaller.accumulation == smaller.global_batch == TINY.global_batch
    assert smaller.layout.ranks == smaller.nodes * smaller.ranks_per_node


def test_where_only_another_batch_would_fit_the_nodes_the_change_is_refused() -> None:
    # Three replicas, one on each node. Two of them would need a batch of 4 samples or a multiple, and there are 6.
    three = TINY.model_copy(update={"global_batch": 6})
    plan = plan_for(3, 2, Layout(data=3, tensor=2), three)

    assert shrunk(plan, three, 2) == (1, Layout(data=1, tensor=2), 3)
    assert shrunk(plan, three, 2, minimum_nodes=2) == (2, Layout(data=1, pipeline=2, tensor=2), 3)
    assert shrunk(plan, three.model_copy(update={"model": _with_layers(three, 1)}), 2, minimum_nodes=2) is None


def test_a_replica_that_spans_part_of_a_node_drops_as_many_as_fill_a_node() -> None:
    # Three ranks a replica, two a node: replicas go in pairs.
    plan = plan_for(6, 2, Layout(data=4, pipeline=3), TINY)

    assert shrunk(plan, TINY, 5) == (3, Layout(data=2, pipeline=3), 4)


def test_a_replica_over_all_nodes_is_cut_anew_with_as_many_ranks_as_can_be_used() -> None:
    plan = plan_for(4, 2, Layout(data=1, pipeline=4, tensor=2), TINY)

    # Of the two layouts on all six ranks, data 3 does not divide the batch.
    assert shrunk(plan, TINY, 3) == (3, Layout(data=1, pipeline=3, tensor=2), 8)
    # Of data 1 × pipeline 2 and data 2 × pipeline 1, which use all ranks, the second has the fewer stages.
    assert shrunk(plan, TINY, 2) == (2, Layout(data=2, pipeline=1, tensor=2), 4)


def test_a_tensor_degree_over_several_nodes_is_never_cut() -> None:
    plan = plan_for(2, 2, Layout(tensor=4), TINY)

    assert shrunk(plan, TINY, 1) is None


def test_replicas_are_not_dropped_where_the_optimizer_would_no_longer_fit() -> None:
    plan = plan_for(4, 1, Layout(data=4), GPT, memory_gib=_gib_for(Layout(data=4)))

    assert plan.fits
    # Two replicas hold half of the optimizer's state each, not a quarter: 52 GiB a rank where 49 are usable.
    assert shrunk(plan, GPT, 2) == (2, Layout(data=1, pipeline=2), 128)


def test_what_fits_in_no_cut_waits() -> None:
    plan = plan_for(4, 1, Layout(data=4), GPT, memory_gib=_gib_for(Layout(data=4)))

    assert shrunk(plan, GPT, 1) is None


def test_a_layout_that_was_given_although_it_overfills_the_accelerator_shrinks_to_what_takes_no_more() -> None:
    plan = plan_for(4, 1, Layout(data=4), GPT, memory_gib=1)

    assert plan.fits is False
    # Two replicas would take 52 GiB a rank, more than the 48 GiB of the job's own plan; three stages take 34 GiB.
    assert shrunk(plan, GPT, 3) == (3, Layout(data=1, pipeline=3), 128)
    assert shrunk(plan, GPT, 1) is None


def test_a_shrunk_plan_says_what_a_rank_now_takes(plan_of: Any) -> None:
    plan = plan_of({"training": {"recipe": "gpt_1b3_4x_p5"}})

    smaller = shrunk_plan(plan, GPT, 1)

    assert smaller is not None
    assert smaller.fits
    assert smaller.memory_bytes == memory_per_rank(GPT, Layout(data=8)).by_part()
    assert smaller.memory_bytes["optimizer"] == pytest.approx(4 * plan.memory_bytes["optimizer"], rel=1e-6)


def test_a_shrunk_plan_keeps_whose_it_is_and_what_the_environment_costs(demo: Plan) -> None:
    smaller = shrunk_plan(demo, TINY, 3)

    assert smaller is not None
    kept = {"environment", "recipe", "ranks_per_node", "micro_batch", "global_batch", "accelerator_memory_bytes"}
    kept |= {"usd_per_hour", "usd_per_hour_at_least"}
    assert smaller.model_dump(include=kept) == demo.model_dump(include=kept)
    assert Plan.model_validate_json(smaller.model_dump_json()) == smaller


def _with_layers(of: Recipe, layers: int) -> Any:
    return of.model.model_copy(update={"layers": layers})


def _gib_for(layout: Layout) -> int:
    """Memory in which this layout just fits, in whole GiB."""
    return int(memory_per_rank(GPT, layout).total / 0.9 / 1024**3) + 1
