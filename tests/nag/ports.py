"""What the security groups of a template let in."""

from __future__ import annotations

from typing import Any


def open_ports(template: dict[str, Any]) -> list[dict[str, Any]]:
    """Rules of security groups that let in SSH, or anything from anywhere."""
    of_type = {
        kind: [resource["Properties"] for resource in template["Resources"].values() if resource["Type"] == kind]
        for kind in ("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress")
    }
    inline = [rule for group in of_type["AWS::EC2::SecurityGroup"] for rule in group.get("SecurityGroupIngress", [])]
    return [rule for rule in (*inline, *of_type["AWS::EC2::SecurityGroupIngress"]) if _is_open(rule)]


def _is_open(rule: dict[str, Any]) -> bool:
    everywhere = rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0"
    to_a_group_alone = rule["IpProtocol"] == "-1" and "SourceSecurityGroupId" in rule
    ssh = not to_a_group_alone and rule.get("FromPort", 0) <= 22 <= rule.get("ToPort", 65535)
    return everywhere or ssh
