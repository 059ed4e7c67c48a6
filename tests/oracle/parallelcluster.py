"""Run by ParallelCluster's own Python: the interfaces that its launch templates would have, for descriptions on stdin.

Reads `{instance type: EC2's description}` as DescribeInstanceTypes has it, writes `{instance type: {"efa": […],
"plain": […]}}` with `[card, device, type]` of each interface. `add_network_interfaces`, `SlurmComputeResource` and
`InstanceTypeInfo` are the package's own; only the CDK 1 that it is built on, a container for the properties here, is
replaced, so that neither its 80 MB nor Node.js is needed.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")


class Properties(SimpleNamespace):
    """Stands for a class of the CDK: keeps what it is given."""

    NetworkInterfaceProperty: type


Properties.NetworkInterfaceProperty = Properties


class AbsentPackage(ModuleType):
    """A package that is not installed: a name in it is a class if it looks like one, and a module otherwise."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> type:
        if not name[0].isupper():
            raise AttributeError(name)
        return Properties if name == "CfnLaunchTemplate" else type(name, (), {})


class AbsentPackages:
    """Finds the packages that ParallelCluster imports for templates alone."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.split(".")[0] in ("aws_cdk", "constructs", "jsii") else None

    def create_module(self, spec: ModuleSpec) -> AbsentPackage:
        return AbsentPackage(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def layout(description: dict[str, Any], *, efa: bool) -> list[list[Any]]:
    """What ParallelCluster makes of a description."""
    name = description["InstanceType"]
    resource = SlurmComputeResource(name="nodes", instance_type=name, efa=Efa(enabled=efa))
    queue = SimpleNamespace(networking=SimpleNamespace(assign_public_ip=None, subnet_ids=["subnet-12345678"]))
    with patch.object(AWSApi, "instance") as api:
        api().ec2.get_instance_type_info = lambda name: InstanceTypeInfo(description)
        found = add_network_interfaces(queue, resource, ["sg-12345678"])
    return [[one.network_card_index, one.device_index, one.interface_type or "interface"] for one in found]


sys.meta_path.append(AbsentPackages())  # type: ignore[arg-type]

from pcluster.aws.aws_api import AWSApi  # type: ignore[import-not-found] # noqa: E402
from pcluster.aws.aws_resources import InstanceTypeInfo  # type: ignore[import-not-found] # noqa: E402
from pcluster.config.cluster_config import Efa, SlurmComputeResource  # type: ignore[import-not-found] # noqa: E402
from pcluster.templates.queues_stack import add_network_interfaces  # type: ignore[import-not-found] # noqa: E402

if __name__ == "__main__":
    known = json.load(sys.stdin)
    layouts = {
        name: {"efa": layout(description, efa=True), "plain": layout(description, efa=False)}
        for name, description in known.items()
    }
    json.dump(layouts, sys.stdout)
