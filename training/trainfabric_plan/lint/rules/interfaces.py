"""Network interfaces of nodes with EFA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from trainfabric_plan.catalog import InstanceType
from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.launches import EFA_TYPES, Launch, known_type, launches
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.values import Value

_GUIDE = "EC2 user guide, efa-acc-inst-types and create-efa, read 2026-11"
_API = "EC2 API model of botocore 1.44.8, LaunchTemplateInstanceNetworkInterfaceSpecificationRequest"
_SHOW = "trainfabric catalog {} shows the layout"
_ADDRESSES = (
    "AssociateCarrierIpAddress",
    "AssociatePublicIpAddress",
    "ConnectionTrackingSpecification",
    "EnaSrdSpecification",
    "Ipv4PrefixCount",
    "Ipv4Prefixes",
    "Ipv6AddressCount",
    "Ipv6Addresses",
    "Ipv6PrefixCount",
    "Ipv6Prefixes",
    "PrimaryIpv6",
    "PrivateIpAddress",
    "PrivateIpAddresses",
    "SecondaryPrivateIpAddressCount",
)
_TYPES = ("interface", *EFA_TYPES)


def _card(interface: Value) -> int | None:
    card = interface.at("NetworkCardIndex")
    return 0 if card.is_missing else card.whole


def _device(interface: Value) -> int | None:
    device = interface.at("DeviceIndex")
    return 0 if device.is_missing else device.whole


def _is_efa(interface: Value) -> bool:
    return interface.at("InterfaceType").text in EFA_TYPES


def _typed(assembly: Assembly) -> Iterator[tuple[Launch, InstanceType]]:
    """Every launch that has or may have EFA, and each type of it that the catalog knows."""
    for launch in launches(assembly):
        if any(_is_efa(one) for one in launch.possible_interfaces):
            for name in dict.fromkeys(name for name, _ in launch.instance_types):
                if (row := known_type(name)) is not None:
                    yield launch, row


def _counted(assembly: Assembly, is_wrong: Callable[[int, int], bool], must: str, remedy: str) -> Iterator[Broken]:
    for launch, row in _typed(assembly):
        interfaces = launch.data.at("NetworkInterfaces")
        kinds = [one.at("InterfaceType") for one in launch.interfaces]
        if not interfaces.is_whole_list or any(kind.is_unknown for kind in kinds):
            continue
        most, found = row.efa_interface_count, len(launch.efa_interfaces)
        if most and is_wrong(found, most):
            yield Broken(at=interfaces, must=must.format(most, row.name), got=found, remedy=remedy.format(row.name))


def _too_many(assembly: Assembly) -> Iterator[Broken]:
    yield from _counted(
        assembly, lambda found, most: found > most, "a list with at most {} EFA interfaces on {}", _SHOW
    )


def _unused(assembly: Assembly) -> Iterator[Broken]:
    yield from _counted(
        assembly,
        lambda found, most: found < most,
        "a list with all {} EFA interfaces of {}",
        "add the others: each carries its share of the bandwidth; " + _SHOW,
    )


def _without_efa(assembly: Assembly) -> Iterator[Broken]:
    for launch, row in _typed(assembly):
        if not row.efa_interface_count:
            kind = next(one for one in launch.possible_interfaces if _is_efa(one)).at("InterfaceType")
            yield Broken(
                at=kind,
                must=f"interface on {row.name}, which has no EFA",
                got=kind.text,
                remedy="take an instance type with EFA: trainfabric catalog lists them",
            )


def _unlisted(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for name, place in launch.instance_types:
            if launch.efa_interfaces and known_type(name) is None:
                yield Broken(
                    at=place,
                    must="an instance type whose network cards the catalog knows, or its EFA interfaces go unchecked",
                    got=name,
                    remedy="correct the name, or run trainfabric catalog refresh",
                )


def _cards(assembly: Assembly) -> Iterator[Broken]:
    for launch, row in _typed(assembly):
        for interface in launch.possible_interfaces:
            card, device = _card(interface), _device(interface)
            if card is None:
                continue
            if card >= len(row.known_cards):
                yield Broken(
                    at=interface.at("NetworkCardIndex"),
                    must=f"below {len(row.known_cards)}, the network cards of {row.name}",
                    got=card,
                    remedy=_SHOW.format(row.name),
                )
            elif device is not None and device >= row.known_cards[card].interfaces:
                yield Broken(
                    at=interface.at("DeviceIndex"),
                    must=f"below {row.known_cards[card].interfaces}, what card {card} of {row.name} takes",
                    got=device,
                    remedy=_SHOW.format(row.name),
                )


def _card_without_efa(assembly: Assembly) -> Iterator[Broken]:
    for launch, row in _typed(assembly):
        for interface in launch.possible_interfaces:
            card = _card(interface)
            if (
                _is_efa(interface)
                and row.efa_interface_count
                and card is not None
                and card < len(row.known_cards)
                and not row.known_cards[card].efa
            ):
                yield Broken(
                    at=interface.at("InterfaceType"),
                    must=f"interface on card {card} of {row.name}, which carries no EFA",
                    got=interface.at("InterfaceType").text,
                    remedy=_SHOW.format(row.name),
                )


def _one_per_card(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        cards = Counter(_card(one) for one in launch.efa_interfaces)
        for card, count in cards.items():
            if card is not None and count > 1:
                yield Broken(
                    at=launch.data.at("NetworkInterfaces"),
                    must=f"a list with one EFA interface on network card {card}",
                    got=count,
                    remedy="give every EFA interface its own NetworkCardIndex",
                )


def _same_slot(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        slots = Counter((_card(one), _device(one)) for one in launch.interfaces)
        for (card, device), count in slots.items():
            if card is not None and device is not None and count > 1:
                yield Broken(
                    at=launch.data.at("NetworkInterfaces"),
                    must=f"a list with one interface at card {card}, device {device}",
                    got=count,
                    remedy="give each interface of a card its own DeviceIndex",
                )


def _primary(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        interfaces = launch.data.at("NetworkInterfaces")
        slots = {(_card(one), _device(one)): one for one in launch.interfaces}
        if not launch.interfaces or not interfaces.is_whole_list or any(None in slot for slot in slots):
            continue
        first = slots.get((0, 0))
        if first is None and launch.users:
            yield Broken(
                at=interfaces,
                must="a list with a primary interface at card 0, device 0",
                remedy="add one of InterfaceType interface",
            )
        elif first is not None and first.at("InterfaceType").text == "efa-only":
            yield Broken(
                at=first.at("InterfaceType"),
                must="interface or efa at card 0, device 0: the primary interface needs an address",
                got="efa-only",
                remedy="add an interface of InterfaceType interface at device 0 and move this one to device 1",
            )


def _addresses(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for interface in launch.possible_interfaces:
            if interface.at("InterfaceType").text == "efa-only":
                for key in _ADDRESSES:
                    setting = interface.at(key)
                    if not setting.is_missing and not setting.is_unknown and setting.truth is not False:
                        yield Broken(
                            at=setting,
                            must="absent on an efa-only interface, which has no address",
                            remedy="remove it, or make the interface efa",
                        )


def _public(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        if len(launch.interfaces) < 2 or not launch.data.at("NetworkInterfaces").is_whole_list:
            continue
        for interface in launch.interfaces:
            if interface.at("AssociatePublicIpAddress").truth:
                yield Broken(
                    at=interface.at("AssociatePublicIpAddress"),
                    must=f"false for a node with {len(launch.interfaces)} interfaces: EC2 refuses the launch",
                    got="true",
                    remedy="use a private subnet with NAT or endpoints, or attach an Elastic IP after the launch",
                )


def _groups_beside(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for key in ("SecurityGroupIds", "SecurityGroups"):
            groups = launch.data.at(key)
            if launch.interfaces and not groups.is_missing and not groups.is_unknown:
                yield Broken(
                    at=groups,
                    must="absent beside NetworkInterfaces: EC2 refuses the launch",
                    remedy="put the groups into Groups of every interface",
                )


def _type_names(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for interface in launch.possible_interfaces:
            kind = interface.at("InterfaceType")
            if kind.text is not None and kind.text not in _TYPES:
                yield Broken(
                    at=kind,
                    must="interface, efa or efa-only",
                    got=kind.text,
                    remedy="write it in lower case",
                )


RULES = (
    Rule(
        id="efa-interface-type",
        severity=Severity.ERROR,
        title="The type of an interface is one that EC2 knows",
        why="EC2 refuses the launch template.",
        source=_API,
        check=_type_names,
    ),
    Rule(
        id="efa-type-without-efa",
        severity=Severity.ERROR,
        title="EFA interfaces only on instance types that have EFA",
        why="EC2 refuses the launch.",
        source=_GUIDE,
        check=_without_efa,
    ),
    Rule(
        id="efa-type-unlisted",
        severity=Severity.WARNING,
        title="The catalog knows the network cards of the instance type",
        why="Nothing can be said about the EFA interfaces of a type whose network cards nobody wrote down.",
        source="the catalog of trainfabric",
        check=_unlisted,
    ),
    Rule(
        id="efa-too-many-interfaces",
        severity=Severity.ERROR,
        title="No more EFA interfaces than the instance type takes",
        why="EC2 refuses the launch. p6-b300 has 17 network cards and takes 16 EFA interfaces.",
        source="https://github.com/eksctl-io/eksctl/pull/8692, read 2026-11",
        check=_too_many,
    ),
    Rule(
        id="efa-unused-interfaces",
        severity=Severity.WARNING,
        title="As many EFA interfaces as the instance type takes",
        why="Each EFA interface carries its share: one of the four of p4d moved 20 GB/s, all of them 78.",
        source="https://github.com/skypilot-org/skypilot/issues/8391, read 2026-11",
        check=_unused,
    ),
    Rule(
        id="efa-card-or-device-index",
        severity=Severity.ERROR,
        title="Card and device indexes that the instance type has",
        why="EC2 refuses the launch: device indexes count on each card, up to the interfaces that the card takes.",
        source="https://github.com/eksctl-io/eksctl/issues/7520, read 2026-11",
        check=_cards,
    ),
    Rule(
        id="efa-card-without-efa",
        severity=Severity.ERROR,
        title="No EFA interface on a card that carries none",
        why="Card 0 of p6-b300 takes ENA interfaces only; EC2 refuses an EFA interface there.",
        source="https://github.com/aws/aws-parallelcluster/issues/7143, read 2026-11",
        check=_card_without_efa,
    ),
    Rule(
        id="efa-one-per-card",
        severity=Severity.ERROR,
        title="At most one EFA interface on a network card",
        why="EC2 refuses a second one.",
        source="https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html, read 2026-11",
        check=_one_per_card,
    ),
    Rule(
        id="interface-same-slot",
        severity=Severity.ERROR,
        title="One interface for each card and device index",
        why="EC2 refuses the launch.",
        source=_API,
        check=_same_slot,
    ),
    Rule(
        id="interface-primary",
        severity=Severity.ERROR,
        title="A primary interface with an address at card 0, device 0",
        why="EC2 refuses a launch without one, and an efa-only interface can never be primary.",
        source=_GUIDE,
        check=_primary,
    ),
    Rule(
        id="efa-only-with-address",
        severity=Severity.ERROR,
        title="No address settings on an efa-only interface",
        why="EC2 answers InvalidParameterValue: efa-only interfaces have no IP addresses.",
        source=_API,
        check=_addresses,
    ),
    Rule(
        id="public-address-with-several-interfaces",
        severity=Severity.ERROR,
        title="No public address at launch for a node with several interfaces",
        why="EC2 refuses it: associatePublicIPAddress cannot be given with several network interfaces.",
        source="https://github.com/aws/karpenter-provider-aws/pull/5666, read 2026-11",
        check=_public,
    ),
    Rule(
        id="security-groups-beside-interfaces",
        severity=Severity.ERROR,
        title="Security groups stand at the interfaces, where there are interfaces",
        why="EC2 accepts no security groups of the instance together with network interfaces.",
        source=_API + "; https://github.com/aws/aws-cdk/issues/30891, read 2026-11",
        check=_groups_beside,
    ),
)
