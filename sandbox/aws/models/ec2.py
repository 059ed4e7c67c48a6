"""EC2 resources that moto's CloudFormation lacks."""

from __future__ import annotations

from typing import Any

from moto.ec2.models import ec2_backends

from sandbox.aws.models.base import Kind, Resource, existing, random_hex


class PlacementGroup(Resource):
    """A placement group: a record, since moto has no placement groups at all."""

    TYPE = "AWS::EC2::PlacementGroup"
    ATTRIBUTES = ("GroupName",)
    API = ("ec2", "CreatePlacementGroup")

    @classmethod
    def api_parameters(cls, properties: dict[str, Any]) -> dict[str, Any]:
        """CreatePlacementGroup takes tags with the resource type they are for."""
        return {key: value for key, value in properties.items() if key != "Tags"}


class SecurityGroupEgress(Resource):
    """An egress rule in moto's security group."""

    TYPE = "AWS::EC2::SecurityGroupEgress"
    KIND = Kind.REAL
    ATTRIBUTES = ("Id",)
    API = ("ec2", "AuthorizeSecurityGroupEgress")

    def create(self) -> str:
        """Add the rule to the group."""
        existing("security group", self.properties["GroupId"], self._backend.get_security_group_from_id)
        rules, _ = self._backend.authorize_security_group_egress(**self._rule())
        return str(rules[0].id) if rules else f"sgr-{random_hex()}"

    def remove(self) -> None:
        """Take the rule out of the group, if the group is still there."""
        if self._backend.get_security_group_from_id(self.properties["GroupId"]):
            self._backend.revoke_security_group_egress(**self._rule())

    @property
    def _backend(self) -> Any:
        return ec2_backends[self.account][self.region]

    def _rule(self) -> dict[str, Any]:
        permission = self.api_parameters(self.properties)["IpPermissions"][0]
        return {
            "group_name_or_id": self.properties["GroupId"],
            "ip_protocol": permission["IpProtocol"],
            "from_port": permission.get("FromPort"),
            "to_port": permission.get("ToPort"),
            "ip_ranges": permission.get("IpRanges", []) + permission.get("Ipv6Ranges", []),
            "source_groups": permission.get("UserIdGroupPairs", []),
            "prefix_list_ids": permission.get("PrefixListIds", []),
        }

    @classmethod
    def api_parameters(cls, properties: dict[str, Any]) -> dict[str, Any]:
        """The rule as EC2's IpPermissions."""
        described = {"Description": properties["Description"]} if "Description" in properties else {}
        permission: dict[str, Any] = {
            key: properties[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in properties
        }
        for source, (target, name) in _EGRESS_TARGETS.items():
            if source in properties:
                permission[target] = [{name: properties[source], **described}]
        return {"GroupId": properties["GroupId"], "IpPermissions": [permission]}


_EGRESS_TARGETS = {
    "CidrIp": ("IpRanges", "CidrIp"),
    "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}
