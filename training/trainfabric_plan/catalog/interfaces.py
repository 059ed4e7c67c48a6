"""Which network interfaces a node with EFA is launched with.

The rule follows the EC2 user guide (efa-acc-inst-types.md, read 2026-11) and ParallelCluster 3.16.1's launch templates
(`pcluster/templates/queues_stack.py`): an ENA interface is primary on card 0, because efa-only can never be; EFA
traffic goes through `efa-only` interfaces, which take no IP address; a card 0 that takes one interface alone
carries both in a combined `efa`. Device indexes never exceed what the card takes (eksctl issue 7520). All of it is read
off the cards of the type's row; no family name decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from trainfabric_plan.catalog.types import NO_SOURCE, InstanceType, NetworkCard, unknown_fact

InterfaceMode = Literal["addresses", "bandwidth"]
"""`addresses`: one IP address per node. `bandwidth`: an ENA interface, so an address, on every card that adds to it."""


class InterfaceType(StrEnum):
    """EC2's `InterfaceType` of a launch template's network interface."""

    INTERFACE = "interface"
    EFA = "efa"
    EFA_ONLY = "efa-only"


@dataclass(frozen=True, kw_only=True)
class Interface:
    """One network interface: its card, its device index on that card, and its type."""

    card: int
    device: int
    type: InterfaceType

    @property
    def takes_address(self) -> bool:
        """Whether the interface takes an IP address of the subnet."""
        return self.type is not InterfaceType.EFA_ONLY


def efa_interfaces(
    instance: InstanceType, *, mode: InterfaceMode = "addresses", combined: bool = False
) -> tuple[Interface, ...]:
    """The interfaces of one node, primary first.

    A type without EFA gets a single ENA interface. The number of interfaces with EFA always equals
    `instance.efa_interface_count`.

    Args:
        instance: Row of the catalog.
        mode: `bandwidth` adds ENA interfaces on the cards that the row names; the same layout as `addresses` for a
            type that has nothing to gain (`offers_bandwidth`).
        combined: EFA as the combined type `efa`, which takes an address on every card. AWS PCS needs it: it does not
            pass on efa-only interfaces (awslabs/awsome-distributed-ai, add-cng-p6-b300.yaml, 2026-07).

    Raises:
        UnknownFact: If nobody could confirm the network cards of the type, or what carries EFA combined.
    """
    if combined and any(card.efa and not card.ena for card in instance.known_cards):
        raise unknown_fact(instance, "combined_interfaces")
    with_address = instance.ip_cards if mode == "bandwidth" else (0,)
    layout: list[Interface] = []
    for index, card in enumerate(instance.known_cards):
        kinds = _kinds(card, ena=index in with_address, combined=combined)
        layout.extend(_on_card(index, card, kinds if index == 0 else kinds[::-1]))
    return tuple(layout)


def offers_bandwidth(instance: InstanceType) -> bool:
    """Whether the layout for bandwidth differs from the one that saves addresses."""
    return len(instance.ip_cards) > 1


def no_bandwidth(instance: InstanceType) -> str:
    """Why the layout for bandwidth is not to be had, to be read after the name of the type."""
    if instance.ip_gbps is None:
        reason = instance.unknown.get("ip_gbps", NO_SOURCE)
        return f": nobody confirmed what more interfaces with an address add ({reason})"
    return ", which has nothing to gain from more interfaces with an address"


def addresses_per_node(layout: Iterable[Interface]) -> int:
    """IP addresses of the subnet that a node with these interfaces takes."""
    return sum(one.takes_address for one in layout)


def _kinds(card: NetworkCard, *, ena: bool, combined: bool) -> list[InterfaceType]:
    if card.efa and (combined or (ena and card.interfaces == 1)):
        return [InterfaceType.EFA]
    return [InterfaceType.INTERFACE] * ena + [InterfaceType.EFA_ONLY] * card.efa


def _on_card(index: int, card: NetworkCard, kinds: list[InterfaceType]) -> Iterator[Interface]:
    """Card 0 has ENA before EFA, a further card EFA before ENA, as in the EC2 user guide's examples.

    A single interface of a further card is device 1 where the card has a device 1, as in ParallelCluster.
    """
    first = 1 if index and len(kinds) == 1 and card.interfaces > 1 else 0
    for device, kind in enumerate(kinds, start=first):
        yield Interface(card=index, device=device, type=kind)
