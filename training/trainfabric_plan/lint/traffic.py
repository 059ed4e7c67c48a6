"""Rules of security groups, wherever they stand: in the group or as resources of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.values import Resource, Value

SECURITY_GROUP = "AWS::EC2::SecurityGroup"


class Direction(StrEnum):
    """Which way traffic goes, seen from the group."""

    INGRESS = "ingress"
    EGRESS = "egress"

    @property
    def separate(self) -> str:
        """Type of a rule that is a resource of its own."""
        return f"AWS::EC2::SecurityGroup{self.capitalize()}"


@dataclass(frozen=True, kw_only=True)
class TrafficRule:
    """One rule of a security group; `at` is the mapping that holds it."""

    at: Value
    direction: Direction

    @property
    def protocol(self) -> str | None:
        """`-1` for all traffic, `tcp` …; `None` where it is unknown."""
        value = self.at.at("IpProtocol")
        if value.number is not None:
            return {-1: "-1", 6: "tcp", 17: "udp"}.get(int(value.number), str(int(value.number)))
        return value.text.lower() if value.text is not None else None

    @property
    def peer_group(self) -> Value:
        """The group on the other side; missing where it is a range of addresses."""
        if self.direction is Direction.EGRESS:
            return self.at.at("DestinationSecurityGroupId")
        by_id = self.at.at("SourceSecurityGroupId")
        return self.at.at("SourceSecurityGroupName") if by_id.is_missing else by_id

    @property
    def range(self) -> str | None:
        """The range of addresses on the other side, where it is known."""
        return self.at.at("CidrIp").text or self.at.at("CidrIpv6").text

    @property
    def is_known(self) -> bool:
        """Whether protocol and ports are known."""
        return self.protocol is not None and (self.protocol == "-1" or self._ports is not None)

    @property
    def _ports(self) -> tuple[int, int] | None:
        first, last = self.at.at("FromPort").whole, self.at.at("ToPort").whole
        return None if first is None or last is None else (first, last)

    def covers(self, first: int, last: int) -> bool:
        """Whether it is known to let TCP through at all these ports."""
        if self.protocol == "-1":
            return True
        return self.protocol == "tcp" and self._ports is not None and self._ports[0] <= first and last <= self._ports[1]


def separate_rules(assembly: Assembly, direction: Direction) -> Iterator[TrafficRule]:
    """Rules that are resources of their own."""
    for resource in assembly.of_type(direction.separate):
        yield TrafficRule(at=resource.properties(), direction=direction)


def rules_of(assembly: Assembly, group: Resource, direction: Direction) -> list[TrafficRule]:
    """Rules of a group, in it or beside it; those of an unknown group count as its own."""
    inline = group.properties(f"SecurityGroup{direction.capitalize()}")
    rules = [TrafficRule(at=value, direction=direction) for value in inline.listed]
    for rule in separate_rules(assembly, direction):
        owner = rule.at.at("GroupId")
        if owner.is_unknown or (owner.reference is not None and owner.reference.resource == group):
            rules.append(rule)
    return rules
