"""Security groups: what EFA needs between nodes, and what nobody should open."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.launches import launches
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.traffic import SECURITY_GROUP, Direction, TrafficRule, rules_of, separate_rules
from trainfabric_plan.lint.values import Resource, Value

_EFA = "EC2 user guide, efa-start-security, read 2026-11"
_SSH = 22


def _group_sets(assembly: Assembly) -> Iterator[tuple[Value, tuple[Resource, ...]]]:
    """The security groups of every EFA interface whose groups are all known, once for each set of them."""
    seen = set()
    for launch in launches(assembly):
        for interface in launch.efa_interfaces:
            found = [group.resource(SECURITY_GROUP) for group in interface.at("Groups").items]
            groups = tuple(group for group in found if group is not None)
            key = frozenset(groups)
            if groups and len(groups) == len(found) and key not in seen:
                seen.add(key)
                yield interface.at("Groups"), groups


def _may_be_open_elsewhere(assembly: Assembly, groups: tuple[Resource, ...]) -> bool:
    return any(not assembly.is_complete(group.template) or assembly.is_used_elsewhere(group) for group in groups)


def _lets_all_through(rule: TrafficRule, groups: tuple[Resource, ...]) -> bool:
    """Whether it is, or may be, all traffic with one of the groups."""
    if rule.protocol is not None and rule.protocol != "-1":
        return False
    peer = rule.peer_group
    return peer.is_unknown or (peer.reference is not None and peer.reference.resource in groups)


def _lacking(assembly: Assembly, direction: Direction) -> Iterator[Broken]:
    for place, groups in _group_sets(assembly):
        rules = [rule for group in groups for rule in rules_of(assembly, group, direction)]
        if any(_lets_all_through(rule, groups) for rule in rules) or _may_be_open_elsewhere(assembly, groups):
            continue
        names = " or ".join(group.id for group in groups)
        yield Broken(
            at=place,
            must=f"groups with an {direction} rule for all traffic (IpProtocol -1) {_WAY[direction]} {names} itself",
            remedy=f"add an {direction.separate} with {_PEER[direction]} of the group" + _NOTE[direction],
        )


_WAY = {Direction.INGRESS: "from", Direction.EGRESS: "to"}
_PEER = {Direction.INGRESS: "SourceSecurityGroupId", Direction.EGRESS: "DestinationSecurityGroupId"}
_NOTE = {Direction.INGRESS: "", Direction.EGRESS: ": EFA is not IP, 0.0.0.0/0 does not cover it"}


def _no_self_ingress(assembly: Assembly) -> Iterator[Broken]:
    yield from _lacking(assembly, Direction.INGRESS)


def _no_self_egress(assembly: Assembly) -> Iterator[Broken]:
    yield from _lacking(assembly, Direction.EGRESS)


def _open_ssh(assembly: Assembly) -> Iterator[Broken]:
    inline = [
        rule
        for group in assembly.of_type(SECURITY_GROUP)
        for rule in rules_of(assembly, group, Direction.INGRESS)
        if rule.at.place.logical_id == group.id
    ]
    for rule in (*inline, *separate_rules(assembly, Direction.INGRESS)):
        if rule.range in ("0.0.0.0/0", "::/0") and rule.covers(_SSH, _SSH):
            yield Broken(
                at=rule.at,
                must="closed to the world at port 22 (SSH)",
                got=rule.range,
                remedy="use Session Manager, or name the range of addresses that may come in",
            )


RULES = (
    Rule(
        id="efa-self-ingress",
        severity=Severity.ERROR,
        title="Security groups of EFA interfaces take all traffic from themselves",
        why="Nodes don't answer each other over EFA: libfabric reports an unresponsive receiver.",
        source=_EFA,
        check=_no_self_ingress,
    ),
    Rule(
        id="efa-self-egress",
        severity=Severity.ERROR,
        title="Security groups of EFA interfaces send all traffic to themselves",
        why="EFA traffic is not IP: a rule to 0.0.0.0/0 does not cover it, and NCCL hangs with libfabric error 4126.",
        source=_EFA + "; https://github.com/gardener/gardener-extension-provider-aws/issues/1832",
        check=_no_self_egress,
    ),
    Rule(
        id="ssh-open-to-the-world",
        severity=Severity.ERROR,
        title="SSH is not open to every address",
        why="Session Manager needs no open port, no key and leaves a trail.",
        source="AWS Security Hub control EC2.13, read 2026-11",
        check=_open_ssh,
    ),
)
