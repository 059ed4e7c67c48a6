from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.errors import InvalidInput, Mistake


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"nmae": "x"}, "demo.yaml: nmae must be a known key, got nmae; did you mean name?", id="unknown key"
        ),
        pytest.param(
            {"fleet.instance_typ": "x"},
            "demo.yaml: fleet.instance_typ must be a known key, got instance_typ; did you mean instance_type?",
            id="unknown key in a section",
        ),
        pytest.param(
            {"storage.lustre.zzz": 1},
            "demo.yaml: storage.lustre.zzz must be a known key, got zzz; "
            "the keys here are file_system_id, mount_name, security_group_id, deployment, capacity_gib, "
            "required_throughput_mbps, throughput_mbps_per_tib, throughput_mbps, read_cache_gib, metadata_iops, efa, "
            "maintenance_window, links, "
            "compression, mount_point",
            id="unknown key that resembles none",
        ),
        pytest.param(
            {"training.layout": {"data": 8, "pipline": 1}},
            "demo.yaml: training.layout.pipline must be a known key, got pipline; did you mean pipeline?",
            id="unknown key in an optional section",
        ),
        pytest.param(
            {"fleet.instance_type": "p5.48xlrge"},
            "demo.yaml: fleet.instance_type must be a type of the catalog, got p5.48xlrge; did you mean p5.48xlarge or "
            "p5e.48xlarge? docs/how-to/add-an-instance-type.md says how to add one",
            id="unknown instance type",
        ),
        pytest.param(
            {"fleet.instance_type": "zzz"},
            "demo.yaml: fleet.instance_type must be a type of the catalog, got zzz; "
            "docs/how-to/add-an-instance-type.md says how to add one",
            id="instance type that resembles none",
        ),
        pytest.param(
            {"fleet.instance_type": ["p5.48xlarge", "p4d.24xlarge"]},
            "demo.yaml: fleet.instance_type must be one instance type: EFA and the ranks need equal nodes, "
            "got p5.48xlarge, p4d.24xlarge",
            id="two instance types",
        ),
        pytest.param(
            {"fleet.instance_type": "m7i.2xlarge"},
            "demo.yaml: fleet.instance_type must be a type with EFA while fleet.efa is on, got m7i.2xlarge; "
            "choose a type with EFA (trainfabric catalog lists them) or set fleet.efa: false",
            id="EFA on a type without it",
        ),
        pytest.param(
            {
                "fleet.instance_type": "trn1.32xlarge",
                "training": {"command": "./train", "code": "code", "ranks_per_node": 32},
            },
            "demo.yaml: fleet.ami_id must be given for trn1.32xlarge: the default image has no Neuron driver, "
            "got nothing; add the id of a Neuron image",
            id="Trainium on the default image",
        ),
        pytest.param({"fleet.nodes": 0}, "demo.yaml: fleet.nodes must be at least 1, got 0", id="no nodes"),
        pytest.param({"fleet.nodes": 2.5}, "demo.yaml: fleet.nodes must be a whole number, got 2.5", id="half a node"),
        pytest.param({"fleet.nodes": "4"}, "demo.yaml: fleet.nodes must be a whole number, got '4'", id="text node"),
        pytest.param(
            {"fleet.workers": "reserved"},
            "demo.yaml: fleet.workers must be one of 'on_demand', 'spot', 'capacity_block', 'reservation' or "
            "'interruptible_reservation', got 'reserved'",
            id="unknown choice",
        ),
        pytest.param(
            {"fleet.max_spot_price": 0}, "demo.yaml: fleet.max_spot_price must be more than 0.0, got 0", id="free spot"
        ),
        pytest.param(
            {"fleet.efa": "yes"}, "demo.yaml: fleet.efa must be true or false, got 'yes'", id="text for a flag"
        ),
        pytest.param(
            {"training.layout": {"data": 4}},
            "demo.yaml: training.layout must be a layout of 8 ranks (nodes × ranks per node), "
            "got data 4 × pipeline 1 × tensor 1 = 4; "
            "change a degree or the number of nodes so that the product is equal",
            id="layout that does not make up the ranks",
        ),
        pytest.param(
            {"training.layout": {"tensor": 8}},
            "demo.yaml: training.layout must be such that tensor divides the 4 attention heads of tiny_cpu, "
            "got tensor 8; use a tensor degree that divides the heads",
            id="layout that does not divide the heads",
        ),
        pytest.param(
            {"training.layout": {"pipeline": 8}},
            "demo.yaml: training.layout must be such that pipeline is at most the 4 layers of tiny_cpu, "
            "got pipeline 8; use fewer stages",
            id="more stages than layers",
        ),
        pytest.param(
            {"training.layout": {"data": 24}, "fleet.nodes": 12},
            "demo.yaml: training.layout must be such that micro-batch 2 × data divides global batch 16, "
            "got data 24; use a data degree that divides it",
            id="layout that does not divide the batch",
        ),
        pytest.param(
            {"training.ranks_per_node": 9},
            "demo.yaml: training.ranks_per_node must be at most the 8 accelerators of p5.48xlarge, got 9; use 8",
            id="more ranks than accelerators",
        ),
        pytest.param(
            {"fleet.instance_type": "m7i.2xlarge", "fleet.efa": False, "training": {"recipe": "tiny_cpu"}},
            "demo.yaml: training.ranks_per_node must be given for m7i.2xlarge, which has no accelerators, "
            "got nothing; say how many ranks run on a node",
            id="CPU nodes without ranks",
        ),
        pytest.param(
            {"training.recipe": "tiny_cpuu"},
            "demo.yaml: training.recipe must be one of gpt_1b3_4x_p5, tiny_cpu, got tiny_cpuu; did you mean tiny_cpu?",
            id="unknown recipe",
        ),
        pytest.param(
            {"training.recipe": "?"},
            "demo.yaml: training.recipe must be one of gpt_1b3_4x_p5, tiny_cpu, got ?; choose one of these",
            id="recipe that resembles none",
        ),
        pytest.param(
            {"network.assign_public_ips": True},
            "demo.yaml: network.assign_public_ips must be false for p5.48xlarge: EC2 gives nodes with 33 interfaces no "
            "public address, got true; use a private subnet with a NAT gateway, which is the default",
            id="public addresses and several interfaces",
        ),
        pytest.param(
            {"network.vpc_id": "vpc-0123456789abcdef0"},
            "demo.yaml: network.subnet_id must be given together with its counterpart, got nothing; "
            "add network.subnet_id, or leave both out and trainfabric makes the network",
            id="VPC without subnet",
        ),
        pytest.param(
            {"network.subnet_id": "subnet-0123456789abcdef0"},
            "demo.yaml: network.vpc_id must be given together with its counterpart, got nothing; "
            "add network.vpc_id, or leave both out and trainfabric makes the network",
            id="subnet without VPC",
        ),
        pytest.param(
            {"network": {"vpc_id": "vpc-01234567", "subnet_id": "subnet-01234567", "cidr": "10.0.0.0/16"}},
            "demo.yaml: network.cidr must be absent when the VPC exists already, got 10.0.0.0/16; "
            "remove network.cidr; the existing VPC keeps its range",
            id="address range for an existing VPC",
        ),
        pytest.param(
            {"network.route_table_id": "rtb-01234567"},
            "demo.yaml: network.route_table_id must be given only with an existing subnet, got rtb-01234567; "
            "remove it, or add network.vpc_id and network.subnet_id",
            id="route table without subnet",
        ),
        pytest.param(
            {"network.cidr": "10.0.0.0/8"},
            r"demo.yaml: network.cidr must be text that matches ^\d{1,3}(\.\d{1,3}){3}/(1[6-9]|2[0-4])$, "
            "got '10.0.0.0/8'",
            id="address range too wide",
        ),
        pytest.param(
            {"storage.lustre.capacity_gib": 1300},
            "demo.yaml: storage.lustre.capacity_gib must be 1200 or a multiple of 2400 GiB, got 1300; use 2400",
            id="Lustre capacity",
        ),
        pytest.param(
            {"storage.lustre.capacity_gib": 3600},
            "demo.yaml: storage.lustre.capacity_gib must be 1200 or a multiple of 2400 GiB, got 3600; use 4800",
            id="Lustre capacity of SCRATCH_1",
        ),
        pytest.param(
            {"storage.lustre.capacity_gib": 0},
            "demo.yaml: storage.lustre.capacity_gib must be 1200 or a multiple of 2400 GiB, got 0; use 1200",
            id="no Lustre capacity",
        ),
        pytest.param(
            {"storage.lustre.throughput_mbps_per_tib": 200},
            "demo.yaml: storage.lustre.throughput_mbps_per_tib must be one of 125, 250, 500, 1000 MB/s per TiB, "
            "got 200; use 250",
            id="Lustre throughput",
        ),
        pytest.param(
            {"availability_zone": "us-west-2a"},
            "demo.yaml: availability_zone must be a zone of us-east-1, got us-west-2a; "
            "use us-east-1a or another zone that offers the instance type",
            id="zone of another region",
        ),
        pytest.param(
            {"account": 123456789012},
            "demo.yaml: account must be text, got 123456789012; put it in quotes",
            id="number for text",
        ),
        pytest.param({"fleet.spares": 65}, "demo.yaml: fleet.spares must be at most 64, got 65", id="too many spares"),
        pytest.param(
            {"fault_tolerance.start_deadline_s": 86_401},
            "demo.yaml: fault_tolerance.start_deadline_s must be at most 86400, got 86401",
            id="a deadline of more than a day",
        ),
        pytest.param(
            {"fault_tolerance.wait_for_replacement_s": 604_801},
            "demo.yaml: fault_tolerance.wait_for_replacement_s must be at most 604800, got 604801",
            id="a wait of more than a week",
        ),
        pytest.param({"fleet.spares": -1}, "demo.yaml: fleet.spares must be at least 0, got -1", id="negative spares"),
        pytest.param(
            {"fleet.spares": 1, "fleet.nodes": 1},
            "demo.yaml: fleet.spares must be 0 for one node: spares take the place of workers, got 1; "
            "remove fleet.spares, or add nodes",
            id="spares beside a single node",
        ),
        pytest.param(
            {"fleet.spares": 2, "orchestrator": "parallelcluster"},
            "demo.yaml: fleet.spares must be 0 with parallelcluster, which replaces nodes by itself, got 2; "
            "remove fleet.spares",
            id="spares of a Slurm cluster",
        ),
        pytest.param(
            {"fault_tolerance.minimum_nodes": 5},
            "demo.yaml: fault_tolerance.minimum_nodes must be at most the 4 of fleet.nodes, got 5; "
            "use 4 to wait for every node, or fewer to go on with what is left",
            id="more nodes than there are",
        ),
        pytest.param(
            {"fault_tolerance.minimum_nodes": 0},
            "demo.yaml: fault_tolerance.minimum_nodes must be at least 1, got 0",
            id="training on no node",
        ),
        pytest.param(
            {"fault_tolerance.start_deadline_s": 30},
            "demo.yaml: fault_tolerance.start_deadline_s must be at least 60, got 30",
            id="a deadline in which no node boots",
        ),
        pytest.param(
            {"fault_tolerance.wait_for_replacement_s": -1},
            "demo.yaml: fault_tolerance.wait_for_replacement_s must be at least 0, got -1",
            id="negative wait",
        ),
        pytest.param(
            {"fault_tolerance.heartbeats": "slow"},
            "demo.yaml: fault_tolerance.heartbeats must be one of 'production' or 'fast', got 'slow'",
            id="unknown profile of heartbeats",
        ),
        pytest.param(
            {"fault_tolerance.minimum_node": 2},
            "demo.yaml: fault_tolerance.minimum_node must be a known key, got minimum_node; "
            "did you mean minimum_nodes?",
            id="misspelt key of the policy",
        ),
        pytest.param(
            {"orchestrator": "parallelcluster", "fault_tolerance.wait_for_replacement_s": 0},
            "demo.yaml: fault_tolerance.wait_for_replacement_s must be left out with parallelcluster: Slurm starts its "
            "jobs again, got 0; remove fault_tolerance.wait_for_replacement_s, or use orchestrator: fleet",
            id="policy of a Slurm cluster",
        ),
        pytest.param({"name": None}, "demo.yaml: name must be text, got nothing", id="empty value"),
        pytest.param({"fleet": [1]}, "demo.yaml: fleet must be a mapping of keys, got [1]", id="list for a section"),
        pytest.param({"tags": {"team": 1}}, "demo.yaml: tags.team must be text, got 1; put it in quotes", id="tag"),
    ],
)
def test_a_broken_rule_is_named_with_place_rule_value_and_remedy(
    mistakes: Any, changes: dict[str, Any], message: str
) -> None:
    assert mistakes(changes) == [message]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("region", "demo.yaml: region must be given, got nothing; add region"),
        ("fleet", "demo.yaml: fleet must be given, got nothing; add fleet"),
        ("fleet.nodes", "demo.yaml: fleet.nodes must be given, got nothing; add nodes"),
        (
            "training.recipe",
            "demo.yaml: training.recipe must be given, got nothing; "
            "add recipe, or command for training code of your own",
        ),
    ],
)
def test_a_missing_value_is_named(mistakes: Any, absent: object, name: str, message: str) -> None:
    assert mistakes({name: absent}) == [message]


def test_every_mistake_is_reported_at_once_in_the_order_of_the_sections(mistakes: Any) -> None:
    found = mistakes(
        {
            "name": "Demo!",
            "training.recipe": "huge",
            "fleet.nodes": 0,
            "storage.lustre.throughput_mbps_per_tib": 1,
            "storage.lustre.capacity_gib": 7,
            "network.vpc_id": "vpc-01234567",
            "colour": "blue",
        }
    )

    assert found == [
        "demo.yaml: name must be text that matches ^[a-z][a-z0-9-]{1,29}$, got 'Demo!'",
        "demo.yaml: network.subnet_id must be given together with its counterpart, got nothing; "
        "add network.subnet_id, or leave both out and trainfabric makes the network",
        "demo.yaml: storage.lustre.capacity_gib must be 1200 or a multiple of 2400 GiB, got 7; use 1200",
        "demo.yaml: storage.lustre.throughput_mbps_per_tib must be one of 125, 250, 500, 1000 MB/s per TiB, got 1; "
        "use 125",
        "demo.yaml: fleet.nodes must be at least 1, got 0",
        "demo.yaml: training.recipe must be one of gpt_1b3_4x_p5, tiny_cpu, got huge; choose one of these",
        "demo.yaml: colour must be a known key, got colour; "
        "the keys here are name, region, availability_zone, account, network, storage, fleet, training, orchestrator, "
        "parallelcluster, fault_tolerance, tags",
    ]


def test_a_broken_section_hides_no_rule_of_another_section(mistakes: Any) -> None:
    found = mistakes({"training": "tiny", "network.assign_public_ips": True})

    assert found == [
        "demo.yaml: network.assign_public_ips must be false for p5.48xlarge: EC2 gives nodes with 33 interfaces no "
        "public address, got true; use a private subnet with a NAT gateway, which is the default",
        "demo.yaml: training must be a mapping of keys, got 'tiny'",
    ]


def test_public_addresses_are_allowed_where_a_node_has_one_interface(environment_data: Any) -> None:
    data = environment_data(
        {"network.assign_public_ips": True, "fleet.instance_type": "c7i.4xlarge", "fleet.efa": False}
    )

    assert validate_environment(data, "demo.yaml").network.assign_public_ips


@pytest.mark.parametrize("capacity", [1200, 2400, 4800, 48000])
@pytest.mark.parametrize("throughput", [125, 250, 500, 1000])
def test_every_size_that_fsx_sells_is_accepted(environment_data: Any, capacity: int, throughput: int) -> None:
    data = environment_data({"storage.lustre": {"capacity_gib": capacity, "throughput_mbps_per_tib": throughput}})

    assert validate_environment(data, "demo.yaml").storage.lustre.capacity_gib == capacity


@pytest.mark.parametrize(
    ("data", "got"), [(None, "nothing"), ([], "[]"), ("demo", "'demo'"), (3, "3")], ids=["empty", "list", "text", "3"]
)
def test_a_file_that_is_no_mapping_is_refused(data: object, got: str) -> None:
    with pytest.raises(ValueError) as caught:
        validate_environment(data, "demo.yaml")

    assert str(caught.value) == (
        f"demo.yaml: the file must be a mapping with the keys name, region, fleet, training, got {got}"
    )


def test_a_key_that_is_no_text_is_refused(mistakes: Any) -> None:
    assert mistakes({"tags": {1: "a"}}) == ["demo.yaml: tags.1.[key] must be text, got 1; put it in quotes"]


def test_a_top_level_key_that_is_no_text_is_refused(environment_data: Any) -> None:
    data = environment_data()
    data[1] = "a"

    with pytest.raises(ValueError) as caught:
        validate_environment(data, "demo.yaml")

    assert str(caught.value) == "demo.yaml: 1 must be a key that is text, got 1; put it in quotes"


def test_a_broken_value_or_an_unknown_key_hides_no_other_mistake_of_its_section(environment_data: Any) -> None:
    broken = environment_data({"fleet.nodes": -1, "fleet.color": "red", "fleet.instance_type": "p5.49xlarge"})
    unknown = environment_data(
        {"training.layout": {"data": 3, "pipline": 1}, "storage.lustre": {"capacity_gib": 7, "x": 1}}
    )

    assert [found.name for found in _mistakes(broken)] == ["fleet.nodes", "fleet.color", "fleet.instance_type"]
    assert {found.name for found in _mistakes(unknown)} == {
        "training.layout.pipline",
        "training.layout",
        "storage.lustre.x",
        "storage.lustre.capacity_gib",
    }


def test_a_policy_may_ask_for_every_node_and_a_slurm_cluster_has_the_defaults(environment_data: Any) -> None:
    strict = environment_data({"fault_tolerance": {"minimum_nodes": 4, "heartbeats": "fast"}, "fleet.spares": 1})

    environment = validate_environment(strict, "demo.yaml")
    assert (environment.fault_tolerance.minimum_nodes, environment.fleet.spares) == (4, 1)
    validate_environment(environment_data({"orchestrator": "parallelcluster"}), "demo.yaml")


def test_a_region_that_is_none_leads_to_no_advice_about_its_zones(environment_data: Any) -> None:
    assert [found.name for found in _mistakes(environment_data({"region": "mars"}))] == ["region"]


def _mistakes(data: dict[str, Any]) -> tuple[Mistake, ...]:
    with pytest.raises(InvalidInput) as refused:
        validate_environment(data, "demo.yaml")
    return refused.value.mistakes
