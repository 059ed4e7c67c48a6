"""Every property of everything public, given a value that is known only when deployed.

The properties are those that `tests/release/interface.py` finds, so that a new one fails here until a table has it. The
token is an export of another stack: of what is deployed with it nothing is known at synthesis, not even its stack.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

import trainfabric_cdk
from tests.cdk.token_makers import (
    ENV,
    MAKERS,
    bucket,
    fleet,
    group,
    home,
    key,
    lustre,
    named,
    number,
    placement_group,
    spot,
    subnet,
    text,
    texts,
    topic,
    vpc,
    whole_list,
)
from tests.release.interface import interface
from trainfabric_cdk import (
    Capacity,
    LustreLink,
    LustreStorage,
)
from trainfabric_plan.errors import InvalidInput

Value = Callable[[cdk.Stack], Any]
EXPORT = '{"Fn::ImportValue": "exported"}'
TYPE = "a type of the catalog, got a token; give it as text: the interfaces of a node follow from it"
GROUPS = "at least 1, got a token; give it as a number: the groups follow from it"
LAUNCHED = "got a token; give it as a number: what is launched follows from it"
THROUGHPUT = "required_throughput_mbps must be known at synthesis: the size follows from it, got a token"


TAKEN: dict[str, dict[str, Value]] = {
    "Capacity": {
        "max_price": number,
        "placement_group_name": text,
        "reservation_id": text,
        "resource_group": text,
    },
    "Capacity.block": {"reservation": text},
    "Capacity.interruptible_reservation": {"reservation": text, "placement_group_name": text},
    "Capacity.reservation": {"reservation": text, "placement_group_name": text},
    "Capacity.reservation_group": {"arn": text, "placement_group_name": text},
    "Capacity.spot": {"max_price": number},
    "CheckpointBucket": {"encryption_key": key},
    "DataBucket": {"encryption_key": key},
    "EfaClusterPlacementGroup": {
        "capacity": lambda stack: Capacity.reservation(text(stack), placement_group_name=text(stack)),
    },
    "EfaSecurityGroup": {"description": text, "vpc": vpc},
    "ExistingLustre": {
        "client_security_group": group,
        "file_system_id": text,
        "mount_name": text,
        "security_group": group,
    },
    "LustreAlarms": {"capacity_gib": number, "file_system_id": text, "topic": topic},
    "LustreLink": {"bucket": bucket, "exports": texts, "imports": texts, "path": text, "prefix": text},
    "LustreLinkedToS3": {
        "alarm_topic": topic,
        "bucket": bucket,
        "capacity_gib": number,
        "client_security_group": group,
        "compression": text,
        "encryption_key": key,
        "links": lambda stack: [LustreLink(path=text(stack), prefix="data/")],
        "maintenance_window": text,
        "storage": lambda stack: LustreStorage.persistent_2(capacity_gib=number(stack)),  # type: ignore[arg-type]
        "subnet": subnet,
        "throughput_mbps_per_tib": number,
        "vpc": vpc,
    },
    "LustreMount": {"dns_name": text, "mount_name": text},
    "LustreStorage.intelligent_tiering": {"metadata_iops": number, "read_cache_gib": number, "throughput_mbps": number},
    "LustreStorage.persistent_2": {"capacity_gib": number, "metadata_iops": number, "throughput_mbps_per_tib": number},
    "LustreStorage.scratch_2": {"capacity_gib": number},
    "ParallelClusterStack": {
        "checkpoint_bucket": bucket,
        "cluster_tags": named,
        "custom_ami": text,
        "data_bucket": bucket,
        "environment": text,
        "file_system_id": text,
        "head_node_instance_type": text,
        "mount_point": text,
        "permissions_boundary": text,
        "security_group": group,
        "ssh_from": text,
        "subnet": subnet,
        "workers": spot,
    },
    "SharedHome": {
        "capacity_gib": number,
        "client_security_group": group,
        "encryption_key": key,
        "subnet": subnet,
        "vpc": vpc,
    },
    "SharedHomeMount": {"path": text, "server": text},
    "SpotTrainingFleet": {
        "boot_commands": texts,
        "checkpoint_bucket": bucket,
        "data_bucket": bucket,
        "environment": text,
        "image_id": text,
        "lustre": lustre,
        "lustre_mount_point": text,
        "placement_group": placement_group,
        "root_device": text,
        "security_group": group,
        "shared_home": home,
        "subnet": subnet,
        "volume_key": key,
        "vpc": vpc,
        "workers": spot,
    },
    "TrainingDashboard": {"environment": text, "file_system_id": text, "groups": named},
    "TrainingKey": {"description": text},
    "TrainingVpc": {"availability_zone": text},
}
"""Properties whose token reaches the template as it is."""

NEEDED_AT_SYNTH: dict[str, dict[str, tuple[Value, str]]] = {
    "Coordinator": {"control_instance_type": (text, f"coordinator must be {TYPE}")},
    "Coordinator.control": {"instance_type": (text, f"coordinator must be {TYPE}")},
    "EfaClusterPlacementGroup": {
        "max_nodes_per_group": (number, f"max_nodes_per_group must be {GROUPS}"),
        "nodes": (number, f"nodes must be {GROUPS}"),
    },
    "LustreStorage.intelligent_tiering": {"required_throughput_mbps": (number, THROUGHPUT)},
    "LustreStorage.persistent_2": {"required_throughput_mbps": (number, THROUGHPUT)},
    "LustreStorage.scratch_2": {"required_throughput_mbps": (number, THROUGHPUT)},
    "ParallelClusterStack": {
        "instance_type": (text, f"instance_type must be {TYPE}"),
        "nodes": (number, f"nodes must be at least 1, {LAUNCHED}"),
        "static_nodes": (number, f"static_nodes must be at least 0, {LAUNCHED}"),
        "version": (
            text,
            "version must be a release such as 3.16.1, got a token; give it as text: logical ids follow from it",
        ),
    },
    "SharedHome": {
        "kind": (text, "kind must be efs or openzfs, got a token; give it as text: what is made follows from it"),
    },
    "SpotTrainingFleet": {
        "boot_commands": (
            whole_list,
            "boot_commands must be a list of commands, got a token for all of them; give one command for it, such as "
            'Fn.join("\\n", commands)',
        ),
        "instance_type": (text, f"instance_type must be {TYPE}"),
        "interfaces": (
            text,
            "interfaces must be addresses or bandwidth, got a token; give it as text: what is launched follows from it",
        ),
        "nodes": (number, f"nodes must be at least 1, {LAUNCHED}"),
        "spares": (number, f"spares must be at least 0, {LAUNCHED}"),
    },
    "TrainingVpc": {
        "cidr": (
            text,
            "cidr must be a range from /16 to /24 such as 10.20.0.0/16, got a token; "
            "give it as text: the subnets are cut out of it",
        ),
        "egress": (text, "egress must be nat or endpoints, got a token; give it as text: what is made follows from it"),
    },
}
"""Properties that must be known at synthesis, and what is said of a token."""

UNSEEN: dict[str, dict[str, tuple[Value, str]]] = {
    "ExistingLustre": {"availability_zone": (text, "a check alone, which a token does not get")},
    "LustreMount": {
        "availability_zone": (text, "a check alone, which a token does not get"),
        "vpc_id": (text, "a check alone, which a token of nothing in the app does not get"),
        "clients": (text, "a check alone, which a token of nothing in the app does not get"),
    },
    "SharedHomeMount": {
        "vpc_id": (text, "a check alone, which a token of nothing in the app does not get"),
        "clients": (text, "a check alone, which a token of nothing in the app does not get"),
    },
    "ParallelClusterStack": {"vpc": (vpc, "it says which subnets are public; the subnet says where nodes are")},
    "SpotTrainingFleet": {
        "training_image": (text, "the job names it; nodes are let pull what is known to lie in ECR, else a warning"),
    },
    "TrainingVpc": {"addresses": (number, "a check alone, which a token does not get")},
}
"""Properties whose token is taken and reaches no template, and why."""

NO_TOKENS: dict[str, dict[str, str]] = {
    "Capacity": {"kind": "a name of ours; the class methods choose it"},
    "Coordinator.training": {},
    "LustreStorage": {"wish": "of ours: the static methods make it, and their properties are above"},
    "ParallelClusterStack": {"depends_on": "constructs", "shared_home": "a construct"},
    "SpotTrainingFleet": {"coordinator": "its properties are above"},
}
"""Properties that no token can stand for, beside switches (CDK has no token for a Python `bool`), scopes and ids."""


def properties(name: str) -> set[str]:
    """Those of which a token could be given."""
    made: Any = trainfabric_cdk
    for part in name.split("."):
        made = getattr(made, part)
    arguments = inspect.signature(made.__init__ if inspect.isclass(made) else made).parameters
    switches = {one.name for one in arguments.values() if one.annotation in (bool, "bool")}
    return set(interface()[name]) - switches - {"scope", "id"} - set(NO_TOKENS.get(name, {}))


PUBLIC = sorted(name for name in interface() if not name.startswith(("testing.", "PropertyError")))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_property_of_everything_public_is_tried_with_a_token(name: str) -> None:
    tried = {one for table in (TAKEN, NEEDED_AT_SYNTH, UNSEEN) for one in table.get(name, {})}

    assert properties(name) == tried


def test_the_tables_name_nothing_that_is_not_public() -> None:
    assert {*TAKEN, *NEEDED_AT_SYNTH, *UNSEEN, *NO_TOKENS} <= set(PUBLIC)
    assert set(MAKERS) == {*TAKEN, *NEEDED_AT_SYNTH, *UNSEEN}


def rows(table: dict[str, dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(name, property, row, id=f"{name}.{property}")
        for name, own in table.items()
        for property, row in own.items()
    ]


@pytest.fixture
def tokens() -> cdk.Stack:
    return cdk.Stack(cdk.App(analytics_reporting=False), "Tokens", env=ENV)


def template_text(stack: cdk.Stack) -> str:
    """All templates of the app."""
    app = cdk.App.of(stack)
    assert app
    stacks = [one for one in app.node.find_all() if isinstance(one, cdk.Stack)]
    return json.dumps([Template.from_stack(one).to_json() for one in stacks])


@pytest.mark.parametrize(("name", "property", "value"), rows(TAKEN))
def test_a_property_that_is_known_only_when_deployed_is_taken_as_it_is(
    tokens: cdk.Stack, name: str, property: str, value: Value
) -> None:
    MAKERS[name](tokens, **{property: value(tokens)})

    made = template_text(tokens)
    assert EXPORT in made
    assert "Token[" not in made and "TOKEN" not in made


@pytest.mark.parametrize(("name", "property", "row"), rows(NEEDED_AT_SYNTH))
def test_what_decides_the_resources_must_be_known_at_synth(
    tokens: cdk.Stack, name: str, property: str, row: tuple[Value, str]
) -> None:
    value, message = row
    with pytest.raises(InvalidInput) as refused:
        MAKERS[name](tokens, **{property: value(tokens)})

    where = "It" if name == "ParallelClusterStack" else "Tokens/It"
    assert str(refused.value) == f"{where}: {message}"


@pytest.mark.parametrize(("name", "property", "row"), rows(UNSEEN))
def test_a_token_that_reaches_no_template_is_taken(
    tokens: cdk.Stack, name: str, property: str, row: tuple[Value, str]
) -> None:
    MAKERS[name](tokens, **{property: row[0](tokens)})

    assert EXPORT not in template_text(tokens)


def test_nodes_are_not_let_pull_an_image_that_is_known_only_when_deployed_and_a_warning_says_so(
    tokens: cdk.Stack,
) -> None:
    fleet(tokens, own_command=True, training_image=text(tokens))

    found = Annotations.from_stack(tokens).find_warning("/Tokens/It", Match.string_like_regexp("training_image"))
    assert [str(one.entry.data) for one in found] == [
        "whether training_image lies in ECR is known only when deployed, so that the nodes get no permission to pull "
        "it: let them, with repository.grant_pull(fleet) [ack: trainfabric:trainingImageUnknown]"
    ]
