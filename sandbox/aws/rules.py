"""Limits of services whose models are moto's own: what neither the CloudFormation schema nor moto holds them to.

Sources: EC2 API reference, CreateLaunchTemplate, and EC2 user guide, "Elastic Fabric Adapter"; Systems Manager API
reference, PutParameter; CloudWatch user guide, "Dashboard body structure"; EC2 Auto Scaling API reference,
CreateAutoScalingGroup.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.aws.schema import api_problems, coerced, resource_schema

Properties = Mapping[str, Any]
USER_DATA_BYTES = 16384
INTERFACE_TYPES = ("interface", "efa", "efa-only")
PRIMARY = (0, 0)
VALUE_BYTES_STANDARD = 4096
VALUE_BYTES_ADVANCED = 8192
UNNAMED = "named-by-cloudformation"


def service_problems(resource_type: str, properties: Properties) -> Iterator[str]:
    """Every limit of its service that a resource breaks; the properties must fit their schema."""
    rule = _RULES.get(resource_type)
    if rule is not None:
        yield from rule(coerced(dict(properties), resource_schema(resource_type) or {}))


def _launch_template(properties: Properties) -> Iterator[str]:
    data = properties["LaunchTemplateData"]
    name = properties.get("LaunchTemplateName", UNNAMED)
    yield from api_problems("ec2", "CreateLaunchTemplate", {"LaunchTemplateName": name, "LaunchTemplateData": data})
    yield from _user_data(data.get("UserData", ""))
    if interfaces := data.get("NetworkInterfaces"):
        yield from _groups_beside_interfaces(data)
        yield from _interface_types(interfaces)
        yield from _interface_places(interfaces)
        yield from _public_address(interfaces)


def _user_data(encoded: str) -> Iterator[str]:
    try:
        decoded = base64.b64decode("".join(encoded.split()), validate=True)
    except binascii.Error:
        yield "property LaunchTemplateData.UserData must be base64"
        return
    if len(decoded) > USER_DATA_BYTES:
        yield f"property LaunchTemplateData.UserData must decode to at most {USER_DATA_BYTES} bytes, got {len(decoded)}"


def _groups_beside_interfaces(data: Properties) -> Iterator[str]:
    for name in ("SecurityGroupIds", "SecurityGroups"):
        if data.get(name):
            yield (
                f"property LaunchTemplateData.{name} must not stand beside NetworkInterfaces; "
                "name the groups in each interface"
            )


def _interface_types(interfaces: list[Properties]) -> Iterator[str]:
    for number, interface in enumerate(interfaces):
        found = interface.get("InterfaceType", INTERFACE_TYPES[0])
        if found not in INTERFACE_TYPES:
            yield (
                f"property LaunchTemplateData.NetworkInterfaces.{number}.InterfaceType must be one of "
                f"{', '.join(INTERFACE_TYPES)}, got {found}"
            )


def _interface_places(interfaces: list[Properties]) -> Iterator[str]:
    where = "property LaunchTemplateData.NetworkInterfaces must have"
    places = Counter(_place(interface) for interface in interfaces)
    for (card, device), count in places.items():
        if count > 1:
            yield f"{where} one interface at network card {card}, device {device}, got {count}"
    primaries = [interface for interface in interfaces if _place(interface) == PRIMARY]
    if not primaries:
        yield f"{where} a primary interface at network card 0, device 0"
    if any(interface.get("InterfaceType") == "efa-only" for interface in primaries):
        yield f"{where} an address on the primary interface; efa-only has none"


def _place(interface: Properties) -> tuple[int, int | None]:
    return interface.get("NetworkCardIndex", 0), interface.get("DeviceIndex")


def _public_address(interfaces: list[Properties]) -> Iterator[str]:
    if len(interfaces) > 1 and any(interface.get("AssociatePublicIpAddress") for interface in interfaces):
        yield (
            "property LaunchTemplateData.NetworkInterfaces must have a single interface "
            f"to associate a public address, got {len(interfaces)}"
        )


def _ssm_parameter(properties: Properties) -> Iterator[str]:
    tier, size = properties.get("Tier", "Standard"), len(properties["Value"].encode())
    most = VALUE_BYTES_STANDARD if tier == "Standard" else VALUE_BYTES_ADVANCED
    if not 0 < size <= most:
        yield f"property Value must have 1 to {most} bytes in tier {tier}, got {size}"


def _dashboard(properties: Properties) -> Iterator[str]:
    try:
        body = json.loads(properties["DashboardBody"])
    except ValueError as error:
        yield f"property DashboardBody must be JSON, got an error: {error}"
        return
    if not isinstance(body, dict) or not isinstance(body.get("widgets"), list):
        yield "property DashboardBody must be a JSON object with a list of widgets"


def _auto_scaling_group(properties: Properties) -> Iterator[str]:
    least, most = int(properties["MinSize"]), int(properties["MaxSize"])
    if least > most:
        yield f"property MaxSize must be at least MinSize {least}, got {most}"
    desired = properties.get("DesiredCapacity")
    if desired is not None and not least <= int(desired) <= most:
        yield f"property DesiredCapacity must be between MinSize {least} and MaxSize {most}, got {desired}"


_RULES: dict[str, Callable[[Properties], Iterator[str]]] = {
    "AWS::AutoScaling::AutoScalingGroup": _auto_scaling_group,
    "AWS::CloudWatch::Dashboard": _dashboard,
    "AWS::EC2::LaunchTemplate": _launch_template,
    "AWS::SSM::Parameter": _ssm_parameter,
}
