"""Environments in China and GovCloud, whose ARNs, service names and endpoints are their own."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from aws_cdk.assertions import Template

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app


def templates(region: str, **given: Any) -> list[dict[str, Any]]:
    data = {
        "name": "elsewhere",
        "region": region,
        "availability_zone": f"{region}a",
        "fleet": {"instance_type": "p4d.24xlarge", "nodes": 2},
        "training": {"recipe": "gpt_1b3_4x_p5"},
    }
    environment = TrainingEnvironment(training_app(), validate_environment({**data, **given}, "elsewhere.yaml"))
    return [dict(Template.from_stack(stack).to_json()) for stack in environment.stacks]


CLOSED = {
    "network": {"egress": "endpoints"},
    "fleet": {
        "instance_type": "p4d.24xlarge",
        "nodes": 2,
        "ami_id": "ami-0123456789abcdef0",
        "prepared_image": True,
    },
}


@pytest.mark.parametrize("given", [{}, CLOSED], ids=["nat", "endpoints"])
@pytest.mark.parametrize(("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")])
def test_every_arn_is_of_the_partition(region: str, partition: str, given: dict[str, Any]) -> None:
    text = json.dumps(templates(region, **given))

    assert set(re.findall(r"arn:(aws[a-z-]*):", text)) <= {partition}
    assert re.search(rf"arn:{partition}:|AWS::Partition", text)


def test_no_name_of_a_service_ends_in_the_domain_of_another_partition() -> None:
    text = json.dumps(templates("us-gov-west-1"))

    assert "amazonaws.com.cn" not in text
