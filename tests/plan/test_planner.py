from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.catalog import on_demand_price
from trainfabric_plan.environment import validate_environment
from trainfabric_plan.errors import InvalidInput, NotFound
from trainfabric_plan.layout import Layout
from trainfabric_plan.planning import Plan, cost_per_hour, make_plan

GIB = 1024**3


def test_a_model_that_fits_one_accelerator_runs_data_parallel(environment_data: Any) -> None:
    data = environment_data({"training": {"recipe": "gpt_1b3_4x_p5"}})

    plan = make_plan(validate_environment(data, "demo.yaml"))

    assert (plan.nodes, plan.ranks_per_node, plan.ranks) == (4, 8, 32)
    assert plan.layout == Layout(data=32)
    assert plan.accumulation == 1024 // (8 * 32)
    assert plan.fits
    assert plan.reasons == [
        "data 32 × pipeline 1 × tensor 1: fewest ranks per replica that fit the accelerator's memory"
    ]


def test_a_model_that_fits_no_single_accelerator_is_cut_inside_the_node_first(environment_data: Any) -> None:
    data = environment_data({"fleet.instance_type": "p4d.24xlarge", "training": {"recipe": "gpt_1b3_4x_p5"}})

    plan = make_plan(validate_environment(data, "demo.yaml"))

    assert plan.layout == Layout(data=16, tensor=2)
    assert plan.fits


def test_nodes_of_one_accelerator_are_joined_to_a_pipeline(environment_data: Any) -> None:
    data = environment_data({"fleet.instance_type": "g6e.8xlarge", "training": {"recipe": "gpt_1b3_4x_p5"}})

    plan = make_plan(validate_environment(data, "demo.yaml"))

    assert plan.layout == Layout(data=2, pipeline=2)
    assert plan.reasons == [
        "data 2 × pipeline 2 × tensor 1: fewest ranks per replica that fit the accelerator's memory",
        "pipeline 2: ZeRO-1, because DeepSpeed refuses ZeRO-2 and ZeRO-3 with a pipeline",
    ]


def test_a_model_that_fits_nowhere_is_refused(environment_data: Any) -> None:
    data = environment_data(
        {"fleet": {"instance_type": "g6e.8xlarge", "nodes": 1}, "training": {"recipe": "gpt_1b3_4x_p5"}}
    )

    with pytest.raises(InvalidInput) as caught:
        make_plan(validate_environment(data, "demo.yaml"))

    assert str(caught.value) == (
        "environment demo: training.recipe must be one with a layout that fits 1 ranks of g6e.8xlarge, "
        "got gpt_1b3_4x_p5; "
        "add nodes, choose a type with more accelerator memory, or give training.layout yourself"
    )


def test_a_given_layout_is_kept_and_its_dangers_are_told(environment_data: Any) -> None:
    data = environment_data({"training.layout": {"data": 2, "tensor": 4}})

    plan = make_plan(validate_environment(data, "demo.yaml"))

    assert plan.layout == Layout(data=2, tensor=4)
    assert plan.reasons == [
        "data 2 × pipeline 1 × tensor 4: given in the environment file",
        "tensor 4 crosses nodes of 2 ranks: every layer waits for the network",
    ]


def test_a_given_layout_that_overfills_the_accelerator_is_kept_and_marked(environment_data: Any) -> None:
    data = environment_data(
        {
            "fleet": {"instance_type": "g6e.8xlarge", "nodes": 4},
            "training": {"recipe": "gpt_1b3_4x_p5", "layout": {"data": 4}},
        }
    )

    plan = make_plan(validate_environment(data, "demo.yaml"))

    assert plan.fits is False


def test_a_plan_fills_at_most_nine_tenths_of_the_accelerator(environment_data: Any) -> None:
    plan = make_plan(validate_environment(environment_data(), "demo.yaml"))
    tenths = plan.model_copy(update={"accelerator_memory_bytes": 10 * GIB})

    assert tenths.model_copy(update={"memory_bytes": {"total": 9 * GIB}}).fits is True
    assert tenths.model_copy(update={"memory_bytes": {"total": 9 * GIB + 1}}).fits is False


def test_nodes_without_accelerators_have_no_limit_to_fit(environment_data: Any) -> None:
    data = environment_data({"fleet": {"instance_type": "m7i.2xlarge", "nodes": 4, "efa": False}})

    plan = make_plan(validate_environment(data, "demo.yaml"))

    assert plan.layout == Layout(data=8)
    assert plan.accelerator_memory_bytes is None
    assert plan.fits is None


def test_a_layout_that_never_saw_the_file_checks_is_refused_as_well(environment_data: Any) -> None:
    environment = validate_environment(environment_data(), "demo.yaml")
    training = environment.training.model_copy(update={"layout": Layout(data=4)})

    with pytest.raises(InvalidInput) as caught:
        make_plan(environment.model_copy(update={"training": training}))

    assert str(caught.value) == (
        "environment demo: training.layout must be a layout of 8 ranks (nodes × ranks per node), "
        "got data 4 × pipeline 1 × tensor 1 = 4; change a degree or the number of nodes so that the product is equal"
    )


def test_an_instance_type_that_never_saw_the_file_checks_is_refused_as_well(environment_data: Any) -> None:
    environment = validate_environment(environment_data(), "demo.yaml")
    fleet = environment.fleet.model_copy(update={"instance_type": "p9.48xlarge"})

    with pytest.raises(NotFound, match=r"^catalog: instance type must be a known one, got p9\.48xlarge; did you mean"):
        make_plan(environment.model_copy(update={"fleet": fleet}))


def test_a_plan_comes_back_from_json_as_it_was(environment_data: Any) -> None:
    plan = make_plan(validate_environment(environment_data(), "demo.yaml"))

    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def bill(data: Any) -> list[tuple[str, float | None]]:
    environment = validate_environment(data, "demo.yaml")
    return [(item.item, item.usd_per_hour) for item in cost_per_hour(environment).items]


def test_the_bill_of_a_spot_fleet_has_the_coordinator_on_demand(environment_data: Any) -> None:
    cost = cost_per_hour(validate_environment(environment_data(), "demo.yaml"))

    assert bill(environment_data()) == [
        ("1 × p5.48xlarge on demand", 55.04),
        ("3 × p5.48xlarge spot", 79.2576),  # 3 × 55.04 × (1 - 0.52)
        ("FSx for Lustre 1200 GiB at 125 MB/s per TiB", 0.2384),  # 1200 × 0.145 / 730
        ("NAT gateway", 0.045),
    ]
    assert cost.usd_per_hour == cost.at_least_usd_per_hour == 134.581
    assert [item.basis for item in cost.items] == [
        "github.com/aws/karpenter-provider-aws zz_generated.pricing_aws.go, us-east-1 on-demand Linux, 2026-07-20",
        "on demand less 52% (Spot Advisor data in github.com/alexei-led/spotinfo at 5eedf20, 2025-06-28); "
        "spot prices move",
        "c3x.dev aws_fsx_lustre_file_system, undated, read 2026-11",
        "cloudburn.io/blog/aws-nat-gateway-pricing, us-east-1, 2026-02",
    ]


def test_on_demand_workers_and_a_single_node_are_one_line(environment_data: Any) -> None:
    assert bill(environment_data({"fleet.workers": "on_demand"}))[0] == ("4 × p5.48xlarge on demand", 220.16)
    assert bill(environment_data({"fleet.nodes": 1}))[:2] == [
        ("1 × p5.48xlarge on demand", 55.04),
        ("FSx for Lustre 1200 GiB at 125 MB/s per TiB", 0.2384),
    ]


def test_warm_spares_are_billed_beside_the_workers_whose_place_they_take(environment_data: Any) -> None:
    assert bill(environment_data({"fleet.spares": 1}))[:2] == [
        ("1 × p5.48xlarge on demand", 55.04),
        ("4 × p5.48xlarge spot, 1 of them spare", 105.6768),
    ]
    assert bill(environment_data({"fleet.spares": 2, "fleet.workers": "on_demand"}))[0] == (
        "6 × p5.48xlarge on demand, 2 of them spare",
        330.24,
    )


def test_spares_are_no_part_of_the_layout(environment_data: Any) -> None:
    with_spares = make_plan(validate_environment(environment_data({"fleet.spares": 2}), "demo.yaml"))
    without = make_plan(validate_environment(environment_data(), "demo.yaml"))

    assert (with_spares.nodes, with_spares.layout) == (without.nodes, without.layout)


def test_a_slurm_cluster_pays_for_its_head_node_and_buys_every_node_as_the_file_says(environment_data: Any) -> None:
    slurm = {"orchestrator": "parallelcluster"}

    assert bill(environment_data(slurm))[:2] == [
        ("1 × m7i.2xlarge on demand", 0.4032),
        ("4 × p5.48xlarge spot", 105.6768),
    ]
    assert bill(environment_data({**slurm, "fleet.workers": "on_demand"}))[:2] == [
        ("1 × m7i.2xlarge on demand", 0.4032),
        ("4 × p5.48xlarge on demand", 220.16),
    ]


def test_an_existing_network_pays_for_no_nat_gateway(environment_data: Any) -> None:
    data = environment_data({"network": {"vpc_id": "vpc-01234567", "subnet_id": "subnet-01234567"}})

    assert "NAT gateway" not in dict(bill(data))


def test_what_has_no_confirmed_price_makes_the_sum_unknown_and_leaves_a_lower_bound(environment_data: Any) -> None:
    data = environment_data({"storage.lustre.throughput_mbps_per_tib": 250})
    cost = cost_per_hour(validate_environment(data, "demo.yaml"))

    assert cost.usd_per_hour is None
    assert cost.at_least_usd_per_hour == 134.3426  # 55.04 + 79.2576 + 0.045
    assert cost.items[2].usd_per_hour is None
    assert cost.items[2].basis == "no confirmed price in the catalog"


def test_a_type_without_prices_is_billed_as_unknown(environment_data: Any) -> None:
    assert bill(environment_data({"fleet.instance_type": "p5e.48xlarge"}))[:2] == [
        ("1 × p5e.48xlarge on demand", None),
        ("3 × p5e.48xlarge spot", None),
    ]


def test_another_region_says_that_its_prices_differ(environment_data: Any) -> None:
    data = environment_data({"region": "us-west-2", "availability_zone": "us-west-2a"})
    items = cost_per_hour(validate_environment(data, "demo.yaml")).items

    assert items[0].basis.endswith("2026-07-20; price of us-east-1, us-west-2 may differ")
    assert items[1].basis.endswith("spot prices move; price of us-east-1, us-west-2 may differ")
    assert items[1].usd_per_hour == 89.1648  # 3 × 55.04 × (1 - 0.46)


@pytest.mark.parametrize(
    ("workers", "lines"),
    [
        (
            "capacity_block",
            [
                (
                    "4 × p5.48xlarge of a capacity block",
                    None,
                    "paid beforehand, when the block was bought; nothing is billed for its nodes by the hour",
                )
            ],
        ),
        (
            "reservation",
            [
                (
                    "4 × p5.48xlarge of a reservation",
                    220.16,
                    "{listed}; billed from the reservation's creation to its end, whether or not nodes run",
                )
            ],
        ),
        (
            "interruptible_reservation",
            [
                ("1 × p5.48xlarge on demand", 55.04, "{listed}"),
                (
                    "3 × p5.48xlarge of an interruptible reservation",
                    None,
                    "reserved by another team; no source says what its instances are billed at",
                ),
            ],
        ),
    ],
)
def test_reserved_nodes_have_their_own_lines_in_the_bill(
    environment_data: Any, workers: str, lines: list[tuple[str, float | None, str]]
) -> None:
    changes = {"fleet.workers": workers, "fleet.reservation": "cr-0123456789abcdef0"}

    items = cost_per_hour(validate_environment(environment_data(changes), "demo.yaml")).items

    price = on_demand_price("p5.48xlarge")
    assert price is not None
    listed = f"{price.source}, {price.date}"
    nodes = [(one.item, one.usd_per_hour, one.basis) for one in items if "p5.48xlarge" in one.item]
    assert nodes == [(item, cost, basis.format(listed=listed)) for item, cost, basis in lines]
