"""The order in which CloudFormation makes an environment, and takes it away in reverse, as the templates say it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

HOMES = ("efs", "openzfs")
LINKS = [{"path": f"/{name}", "prefix": f"{name}/"} for name in ("data", "models", "results")]
LUSTRE_RULE = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")


class Order:
    """What waits for what, in a template and between the stacks of an environment."""

    def __init__(self, directory: Path) -> None:
        manifest = json.loads((directory / "manifest.json").read_text())
        self._stacks: dict[str, list[str]] = {
            name: one.get("dependencies", [])
            for name, one in manifest["artifacts"].items()
            if one["type"] == "aws:cloudformation:stack"
        }
        self._templates = {name: json.loads((directory / f"{name}.template.json").read_text()) for name in self._stacks}

    def resources(self, stack: str) -> Mapping[str, dict[str, Any]]:
        """The resources of a stack by logical id."""
        found: dict[str, dict[str, Any]] = self._templates[stack]["Resources"]
        return found

    def of_type(self, stack: str, *kinds: str) -> list[str]:
        """Logical ids of the resources of these types, in the order of the template."""
        return [name for name, one in self.resources(stack).items() if one["Type"] in kinds]

    def before(self, stack: str, resource: str) -> set[str]:
        """Everything of the same stack that exists before a resource, and is deleted after it."""
        return _reached(resource, lambda name: _needed(self.resources(stack)[name], set(self.resources(stack))))

    def stacks_before(self, stack: str) -> set[str]:
        """Stacks that are deployed before this one, and destroyed after it."""
        return _reached(stack, lambda name: {one for one in self._stacks[name] if one in self._stacks})

    def imports(self, stack: str) -> set[str]:
        """Stacks whose outputs this one uses, which CloudFormation does not delete before it."""
        exports = {
            output["Export"]["Name"]: name
            for name, template in self._templates.items()
            for output in template.get("Outputs", {}).values()
            if "Export" in output
        }
        return {exports[str(value)] for key, value in _walk(self._templates[stack]) if key == "Fn::ImportValue"}

    def imported(self, stack: str, resource: str) -> str:
        """All values of other stacks that a resource uses, as one text."""
        return " ".join(str(value) for key, value in _walk(self.resources(stack)[resource]) if key == "Fn::ImportValue")


def _reached(start: str, needs: Any) -> set[str]:
    todo, seen = [start], set[str]()
    while todo:
        for name in needs(todo.pop()) - seen:
            seen.add(name)
            todo.append(name)
    return seen


def _needed(resource: Mapping[str, Any], names: set[str]) -> set[str]:
    found = set(resource.get("DependsOn", []))
    for key, value in _walk(resource.get("Properties", {})):
        if key == "Ref":
            found.add(str(value))
        elif key == "Fn::GetAtt":
            found.add(str(value[0]))
    return found & names


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner)


@pytest.fixture(scope="module", params=HOMES)
def home(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def order(home: str) -> Order:
    """That of an environment with three links and a shared home."""
    app = training_app()
    description = {
        "name": "demo",
        "region": "us-east-1",
        "availability_zone": "us-east-1a",
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
        "training": {"recipe": "gpt_1b3_4x_p5"},
        "storage": {"shared_home": home, "lustre": {"links": LINKS}},
    }
    TrainingEnvironment(app, validate_environment(description, "demo.yaml"))
    return Order(Path(app.synth().directory))


def lustre(order: Order) -> str:
    (found,) = (
        name
        for name in order.of_type("demo-Storage", "AWS::FSx::FileSystem")
        if order.resources("demo-Storage")[name]["Properties"]["FileSystemType"] == "LUSTRE"
    )
    return found


def home_server(order: Order, home: str) -> str:
    """What nodes mount: the mount target of EFS, the file system of OpenZFS."""
    if home == "efs":
        (target,) = order.of_type("demo-Storage", "AWS::EFS::MountTarget")
        return target
    (openzfs,) = (one for one in order.of_type("demo-Storage", "AWS::FSx::FileSystem") if one != lustre(order))
    return openzfs


def test_stacks_are_made_from_the_network_up_and_taken_away_in_reverse(order: Order) -> None:
    assert order.stacks_before("demo-Network") == set()
    assert order.stacks_before("demo-Storage") == {"demo-Network"}
    assert order.stacks_before("demo-Fleet") == {"demo-Network", "demo-Storage"}
    assert {"demo-Network", "demo-Storage"} <= order.stacks_before("demo-Observability")


def test_cloudformation_itself_holds_the_network_and_the_storage_until_the_nodes_are_gone(order: Order) -> None:
    assert order.imports("demo-Storage") == {"demo-Network"}
    assert order.imports("demo-Fleet") == {"demo-Network", "demo-Storage"}


def test_every_launch_template_waits_for_what_its_nodes_mount(order: Order, home: str) -> None:
    templates = order.of_type("demo-Fleet", "AWS::EC2::LaunchTemplate")

    assert len(templates) == 2
    for one in templates:
        used = order.imported("demo-Fleet", one)
        assert lustre(order) in used
        assert home_server(order, home) in used


def test_groups_of_nodes_wait_for_their_launch_templates(order: Order) -> None:
    templates = set(order.of_type("demo-Fleet", "AWS::EC2::LaunchTemplate"))
    groups = order.of_type("demo-Fleet", "AWS::AutoScaling::AutoScalingGroup")

    assert len(groups) == 2
    assert {frozenset(order.before("demo-Fleet", group) & templates) for group in groups} == {
        frozenset({template}) for template in templates
    }


def test_a_file_system_waits_for_every_rule_of_its_group(order: Order) -> None:
    system = lustre(order)
    rules = {one for one in order.of_type("demo-Storage", *LUSTRE_RULE) if one.startswith("Lustre")}

    assert len(rules) == 12
    assert rules <= order.before("demo-Storage", system)


def test_links_wait_for_the_file_system_their_bucket_and_one_another(order: Order) -> None:
    links = order.of_type("demo-Storage", "AWS::FSx::DataRepositoryAssociation")
    (bucket,) = (one for one in order.of_type("demo-Storage", "AWS::S3::Bucket") if one.startswith("DataBucket"))

    assert len(links) == 3
    for number, link in enumerate(links):
        before = order.before("demo-Storage", link)
        assert {lustre(order), bucket, *links[:number]} <= before
        assert not set(links[number:]) & before


def test_a_home_can_be_mounted_only_once_the_rule_lets_nodes_in(order: Order, home: str) -> None:
    rules = {one for one in order.of_type("demo-Storage", *LUSTRE_RULE) if one.startswith("SharedHome")}

    assert len(rules) == 1
    assert rules <= order.before("demo-Storage", home_server(order, home))


def test_the_way_out_of_the_network_exists_before_any_node_could_need_it(order: Order) -> None:
    (gateway,) = order.of_type("demo-Network", "AWS::EC2::NatGateway")
    attached = set(order.of_type("demo-Network", "AWS::EC2::VPCGatewayAttachment"))

    assert len(attached) == 1
    assert attached <= order.before("demo-Network", gateway)
