from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainfabric_plan.environment.file import read_environment

ROOT = Path(__file__).parents[2]


def test_json_is_the_plan_with_parameters_fit_and_bill(trainfabric: Any, environment_file: Any) -> None:
    ended = trainfabric("plan", environment_file(), "--json")

    assert (ended.status, ended.err) == (0, "")
    assert ended.json == {
        "environment": "demo",
        "recipe": "tiny_cpu",
        "nodes": 4,
        "ranks_per_node": 2,
        "layout": {"data": 2, "pipeline": 2, "tensor": 2},
        "micro_batch": 2,
        "accumulation": 4,
        "global_batch": 16,
        "memory_bytes": {
            "weights": 843648,
            "gradients": 843648,
            "optimizer": 1265472,
            "activations": 2162688,
            "logits": 3145728,
            "total": 8261184,
        },
        "accelerator_memory_bytes": 80 * 1024**3,
        "usd_per_hour": 134.581,
        "usd_per_hour_at_least": 134.581,
        "reasons": [
            "data 2 × pipeline 2 × tensor 2: given in the environment file",
            "pipeline 2: ZeRO-1, because DeepSpeed refuses ZeRO-2 and ZeRO-3 with a pipeline",
        ],
        "instance_type": "p5.48xlarge",
        "ranks": 8,
        "parameters": 656448,
        "fits": True,
        "cost_items": [
            {
                "item": "1 × p5.48xlarge on demand",
                "usd_per_hour": 55.04,
                "basis": "github.com/aws/karpenter-provider-aws zz_generated.pricing_aws.go, "
                "us-east-1 on-demand Linux, 2026-07-20",
            },
            {
                "item": "3 × p5.48xlarge spot",
                "usd_per_hour": 79.2576,
                "basis": "on demand less 52% (Spot Advisor data in github.com/alexei-led/spotinfo at 5eedf20, "
                "2025-06-28); spot prices move",
            },
            {
                "item": "FSx for Lustre 1200 GiB at 125 MB/s per TiB",
                "usd_per_hour": 0.2384,
                "basis": "c3x.dev aws_fsx_lustre_file_system, undated, read 2026-11",
            },
            {
                "item": "NAT gateway",
                "usd_per_hour": 0.045,
                "basis": "cloudburn.io/blog/aws-nat-gateway-pricing, us-east-1, 2026-02",
            },
        ],
        "cost_not_included": "EBS root volumes, data transfer, NAT data processing, S3 requests and storage",
    }


@pytest.mark.parametrize(
    "arguments",
    [("plan", "show", "demo.yaml", "--json"), ("plan", "--json", "demo.yaml"), ("plan", "show", "--json", "demo.yaml")],
)
def test_show_is_what_plan_does_by_default(trainfabric: Any, environment_file: Any, arguments: tuple[str, ...]) -> None:
    default = trainfabric("plan", environment_file(), "--json")

    assert trainfabric(*arguments) == default


def test_people_get_layout_memory_cost_and_reasons(trainfabric: Any, environment_file: Any) -> None:
    ended = trainfabric("plan", environment_file())

    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == "demo: tiny_cpu, 656,448 parameters, on 4 × p5.48xlarge"
    for line in (
        "ranks 8 4 nodes × 2",
        "global batch 16 micro-batch 2 × accumulation 4 × data 2",
        "total 7.9 MiB",
        "accelerator (fits, with a margin) 80.0 GiB",
        "sum 134.58 at list prices of us-east-1",
        "Not included: EBS root volumes, data transfer, NAT data processing, S3 requests and storage.",
        "• data 2 × pipeline 2 × tensor 2: given in the environment file",
    ):
        assert line in lines


def test_an_unknown_price_is_shown_as_a_lower_bound(trainfabric: Any, environment_file: Any) -> None:
    file = environment_file({"p5.48xlarge": "p5e.48xlarge"})

    lines = [" ".join(line.split()) for line in trainfabric("plan", file).out.splitlines()]
    assert "1 × p5e.48xlarge on demand unknown no confirmed price in the catalog" in lines
    assert "at least 0.28 sum of what has a confirmed price" in lines
    assert trainfabric("plan", file, "--json").json["usd_per_hour"] is None


def test_a_layout_that_does_not_fit_is_said_to_people_and_programs(trainfabric: Any, environment_file: Any) -> None:
    large = {
        "p5.48xlarge": "g6e.8xlarge",
        "tiny_cpu": "gpt_1b3_4x_p5",
        "ranks_per_node: 2": "ranks_per_node: 1",
        "{data: 2, pipeline: 2, tensor: 2}": "{data: 4}",
    }
    file = environment_file(large)

    assert trainfabric("plan", file, "--json").json["fits"] is False
    assert trainfabric("plan", file).out.endswith("The fullest rank does not fit its accelerator.\n")


@pytest.mark.parametrize("file", sorted((ROOT / "environments").glob("*.yaml")), ids=lambda file: file.name)
def test_every_environment_of_this_repository_can_be_planned(trainfabric: Any, file: Path) -> None:
    planned = trainfabric("plan", str(file), "--json").json

    assert planned["fits"] is True if read_environment(file).training.recipe else "fits" not in planned


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        pytest.param(
            {"nodes: 4": "nods: 4"},
            "demo.yaml:4: fleet.nodes must be given, got nothing; add nodes\n"
            "demo.yaml:6: fleet.nods must be a known key, got nods; did you mean nodes?\n",
            id="unknown key",
        ),
        pytest.param(
            {"p5.48xlarge": "p5.48xl"},
            "demo.yaml:5: fleet.instance_type must be a type of the catalog, got p5.48xl; did you mean p5.48xlarge or "
            "p5e.48xlarge? docs/how-to/add-an-instance-type.md says how to add one\n",
            id="unknown instance type",
        ),
        pytest.param(
            {"p5.48xlarge": "c7i.4xlarge"},
            "demo.yaml:5: fleet.instance_type must be a type with EFA while fleet.efa is on, got c7i.4xlarge; "
            "choose a type with EFA (trainfabric catalog lists them) or set fleet.efa: false\n",
            id="no EFA",
        ),
        pytest.param(
            {"p5.48xlarge": "[p5.48xlarge, p4d.24xlarge]"},
            "demo.yaml:5: fleet.instance_type must be one instance type: EFA and the ranks need equal nodes, "
            "got p5.48xlarge, p4d.24xlarge\n",
            id="two types",
        ),
        pytest.param({"nodes: 4": "nodes: 0"}, "demo.yaml:6: fleet.nodes must be at least 1, got 0\n", id="nodes < 1"),
        pytest.param(
            {"data: 2": "data: 4"},
            "demo.yaml:10: training.layout must be a layout of 8 ranks (nodes × ranks per node), "
            "got data 4 × pipeline 2 × tensor 2 = 16; "
            "change a degree or the number of nodes so that the product is equal\n",
            id="layout that does not make up the ranks",
        ),
        pytest.param(
            {"fleet:": "network: {assign_public_ips: true}\nfleet:"},
            "demo.yaml:4: network.assign_public_ips must be false for p5.48xlarge: EC2 gives nodes with 33 interfaces "
            "no public address, got true; use a private subnet with a NAT gateway, which is the default\n",
            id="public IPs",
        ),
        pytest.param(
            {"fleet:": "storage:\n  lustre: {capacity_gib: 1000, throughput_mbps_per_tib: 1}\nfleet:"},
            "demo.yaml:5: storage.lustre.capacity_gib must be 1200 or a multiple of 2400 GiB, got 1000; use 1200\n"
            "demo.yaml:5: storage.lustre.throughput_mbps_per_tib must be one of 125, 250, 500, 1000 MB/s per TiB, "
            "got 1; use 125\n",
            id="Lustre sizes",
        ),
        pytest.param(
            {"name: demo": "name: demo\nname: other"},
            "demo.yaml:2: name must be given once, got twice; remove one of them\n",
            id="repeated key",
        ),
    ],
)
@pytest.mark.parametrize("option", ["--json", None], ids=["json", "table"])
def test_a_wrong_environment_ends_with_status_2_and_its_mistakes_alone(
    trainfabric: Any, environment_file: Any, replace: dict[str, str], message: str, option: str | None
) -> None:
    ended = trainfabric("plan", environment_file(replace), *([option] if option else []))

    assert (ended.status, ended.out, ended.err) == (2, "", message)


def test_a_missing_file_ends_with_status_2(trainfabric: Any) -> None:
    ended = trainfabric("plan", "nowhere.yaml")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "nowhere.yaml: environment file must be an existing file, got none; trainfabric init writes one\n"
    )


@pytest.mark.parametrize(
    ("there", "warning"),
    [
        (
            False,
            "must be a folder when job start uploads it, got ours, where there is none; its path is relative to the "
            "environment file\n",
        ),
        (True, ""),
    ],
    ids=["missing", "there"],
)
def test_a_code_folder_that_is_not_there_is_warned_about(
    trainfabric: Any, tmp_path: Path, there: bool, warning: str
) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(
        "name: lab\nregion: us-east-1\navailability_zone: us-east-1a\n"
        "fleet: {instance_type: p5.48xlarge, nodes: 2}\ntraining: {command: python train.py, code: ours}\n",
        encoding="utf-8",
    )
    if there:
        (tmp_path / "ours").mkdir()

    ended = trainfabric("plan", str(file), "--json")

    assert (ended.status, ended.err) == (0, warning and f"warning: {file}: training.code {warning}")
