"""A fleet with its network and file system, of which a report asks one thing or another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match, Template

from trainfabric_cdk import (
    Capacity,
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    LustreLinkedToS3,
    PropertyError,
    SpotTrainingFleet,
    TrainingVpc,
)
from trainfabric_cli.cloudformation import read_template
from trainfabric_plan.lint import Assembly, chosen_rules, lint

CASES = Path(__file__).parents[1] / "plan/lint/cases"


class Scene:
    """A stack at `Demo` with a network, a group of nodes and two buckets."""

    def __init__(self, **context: Any) -> None:
        self.app = cdk.App(analytics_reporting=False, context=context)
        self.stack = cdk.Stack(self.app, "Demo", env=cdk.Environment(account="123456789012", region="us-east-1"))
        self.network = TrainingVpc(self.stack, "Network", availability_zone="us-east-1a")
        self.nodes = EfaSecurityGroup(self.stack, "Nodes", vpc=self.network.vpc)
        self.data = s3.Bucket.from_bucket_name(self.stack, "Data", "demo-data")
        self.checkpoints = s3.Bucket.from_bucket_name(self.stack, "Checkpoints", "demo-checkpoints")

    def lustre(self, **given: Any) -> LustreLinkedToS3:
        """A file system; `given` says otherwise."""
        usual = {
            "vpc": self.network.vpc,
            "subnet": self.network.private_subnet,
            "client_security_group": self.nodes,
            "bucket": self.data,
        }
        return LustreLinkedToS3(self.stack, "Lustre", **{**usual, **given})

    def fleet(self, **given: Any) -> SpotTrainingFleet:
        """Four spot p5.48xlarge; `given` says otherwise."""
        workers = given.get("workers", Capacity.spot())
        usual = {
            "environment": "demo",
            "vpc": self.network.vpc,
            "subnet": self.network.private_subnet,
            "security_group": self.nodes,
            "instance_type": "p5.48xlarge",
            "nodes": 4,
            "data_bucket": self.data,
            "checkpoint_bucket": self.checkpoints,
            "lustre": self.lustre().mount,
        }
        if "placement_group" not in given:
            usual["placement_group"] = EfaClusterPlacementGroup(self.stack, "Placement", capacity=workers, nodes=4)
        return SpotTrainingFleet(self.stack, "Fleet", **{**usual, **given})

    def refusal(self, **given: Any) -> str:
        """What a fleet like this is answered with."""
        with pytest.raises(PropertyError) as refused:
            self.fleet(**given)
        return str(refused.value)

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Resources of a type, by logical id."""
        found = Template.from_stack(self.stack).find_resources(kind)
        return {name: dict(resource) for name, resource in found.items()}

    def properties(self, kind: str) -> list[dict[str, Any]]:
        """Properties of the resources of a type."""
        return [one.get("Properties", {}) for one in self.of_type(kind).values()]

    def launches(self) -> list[dict[str, Any]]:
        """Data of the launch templates."""
        return [one["LaunchTemplateData"] for one in self.properties("AWS::EC2::LaunchTemplate")]

    def warnings(self) -> list[str]:
        """Warnings at synthesis."""
        found = Annotations.from_stack(self.stack).find_warning("*", Match.any_value())
        return [str(message.entry.data) for message in found]


def found_in_case(rule: str, tmp_path: Path) -> str:
    """What `trainfabric lint` says of the bad template of a rule, and of that rule alone."""
    template = tmp_path / "template.yaml"
    template.write_text((CASES / f"{rule}.yaml").read_text().partition("\n---\n")[0])
    (finding, *_) = lint(Assembly([read_template(template, {})]), chosen_rules(select=(rule,)))
    return finding.message.removeprefix(f"{tmp_path}/")


def short(value: Any, *names: str) -> str:
    """Some keys of a part of a template, as JSON."""
    return json.dumps({name: value[name] for name in names if name in value})
