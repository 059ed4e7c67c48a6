"""Which network interfaces a node with EFA is launched with.

The rule follows the EC2 user guide (efa-acc-inst-types, 2026) and ParallelCluster 3.16.1's launch templates
(`pcluster/templates/queues_stack.py`): an ENA interface is primary on card 0, because efa-only can never be; EFA
traffic goes through `efa-only` interfaces, which take no IP address; a card that takes one interface alone
carries both in a combined `efa`. Device indexes never exceed what the card takes (eksctl issue 7520).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trainfabric_plan.catalog.instances import InstanceType


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


def efa_interfaces(instance: InstanceType) -> tuple[Interface, ...]:
    """The interfaces of one node, primary first.

    A type without EFA gets a single ENA interface. The number of interfaces with EFA always equals
    `instance.efa_interface_count`.
    """
    first, *others = instance.cards
    return (
        *_first_card(first.efa, first.interfaces),
        *(
            Interface(card=index, device=0 if card.interfaces == 1 else 1, type=InterfaceType.EFA_ONLY)
            for index, card in enumerate(others, start=1)
            if card.efa
        ),
    )


def _first_card(efa: bool, most: int) -> tuple[Interface, ...]:
    if efa and most == 1:
        return (Interface(card=0, device=0, type=InterfaceType.EFA),)
    primary = Interface(card=0, device=0, type=InterfaceType.INTERFACE)
    return (primary, Interface(card=0, device=1, type=InterfaceType.EFA_ONLY)) if efa else (primary,)
