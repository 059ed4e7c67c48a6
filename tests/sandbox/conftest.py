"""One embedded AWS and one SeaweedFS for all tests of the sandbox: each takes seconds to start."""

from __future__ import annotations

import copy
import itertools
import json
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from sandbox.endpoints import RESOURCES_PATH
from sandbox.processes import Children
from sandbox.services import ACCESS_KEY, REGION, SECRET_KEY, embedded_aws, seaweedfs


@dataclass(frozen=True)
class Aws:
    """The embedded AWS as a client sees it."""

    endpoint: str

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(retries={"total_max_attempts": 1}),
        )

    def create(self, stack: str, resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> None:
        self.client("cloudformation").create_stack(StackName=stack, TemplateBody=template(resources, outputs))

    def update(self, stack: str, resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> None:
        self.client("cloudformation").update_stack(StackName=stack, TemplateBody=template(resources, outputs))

    def delete(self, stack: str) -> None:
        self.client("cloudformation").delete_stack(StackName=stack)

    def outputs(self, stack: str) -> dict[str, str]:
        described = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}

    def stack_names(self) -> list[str]:
        pages = self.client("cloudformation").get_paginator("describe_stacks").paginate()
        return [stack["StackName"] for page in pages for stack in page["Stacks"]]

    def resources(self, stack: str) -> dict[str, dict[str, str]]:
        with urllib.request.urlopen(self.endpoint + RESOURCES_PATH) as answer:
            found = json.load(answer)
        return {resource["logical_id"]: resource for resource in found if resource["stack"] == stack}


def refused(call: Any, *arguments: Any) -> str:
    """The message of the 400 ValidationError that a call ends in, without any retry."""
    with pytest.raises(ClientError) as failure:
        call(*arguments)
    response = failure.value.response
    assert response["Error"]["Code"] == "ValidationError"
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return str(response["Error"]["Message"])


def template(resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> str:
    values = {name: {"Value": value} for name, value in (outputs or {}).items()}
    return json.dumps({"Resources": resources, "Outputs": values})


@pytest.fixture(scope="session")
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


@pytest.fixture(scope="session")
def aws(children: Children, tmp_path_factory: pytest.TempPathFactory) -> Aws:
    return Aws(embedded_aws(children, log=tmp_path_factory.mktemp("aws") / "aws.log"))


@pytest.fixture(scope="session")
def s3_endpoint(children: Children, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("s3")
    return seaweedfs(children, directory, log=directory / "seaweedfs.log")


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def new_name(_numbers: Iterator[int]) -> Callable[[str], str]:
    """Names that no other test has taken in the shared services."""
    return lambda what: f"{what}-{next(_numbers)}"


@pytest.fixture
def stack(new_name: Callable[[str], str]) -> str:
    return new_name("stack")


NETWORK: dict[str, Any] = {
    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}},
    "Subnet": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.9.0.0/20", "AvailabilityZone": "us-east-1a"},
    },
    "Group": {
        "Type": "AWS::EC2::SecurityGroup",
        "Properties": {"GroupDescription": "nodes", "VpcId": {"Ref": "Vpc"}},
    },
}


@pytest.fixture
def network() -> dict[str, Any]:
    return copy.deepcopy(NETWORK)


@pytest.fixture(scope="session")
def sandbox_root() -> Path:
    return Path(__file__).parents[2]
