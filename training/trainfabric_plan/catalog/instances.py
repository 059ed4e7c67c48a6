"""Instance types that trainfabric knows.

Network cards, interfaces per card, EFA counts and accelerators come from Karpenter's generated DescribeInstanceTypes
data (github.com/aws/karpenter-provider-aws, `zz_generated.vpclimits.go` and the instance-type reference, 2026-08);
vCPU, memory and architecture from moto 5.2.5's DescribeInstanceTypes snapshot, which a test compares. That card 0
carries EFA is read off as ParallelCluster 3.16.1 does: EFA interfaces == network cards.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from trainfabric_plan.errors import NotFound

SOURCE = "Karpenter zz_generated.vpclimits.go and instance-type reference; moto 5.2.5 DescribeInstanceTypes"
SOURCE_DATE = "2026-08"
HOW_TO_ADD = "docs/how-to/add-an-instance-type.md"


@dataclass(frozen=True, kw_only=True)
class NetworkCard:
    """One network card.

    Attributes:
        interfaces: Most interfaces that EC2 attaches to this card.
        efa: Whether the card takes an EFA interface.
    """

    interfaces: int
    efa: bool


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """What trainfabric knows about one EC2 instance type.

    Attributes:
        name: EC2's name, such as `p5.48xlarge`.
        accelerator: Name of the accelerator, or `None` on CPU nodes.
        accelerators: Number of accelerators; one rank runs on each.
        accelerator_memory_mib: Memory of one accelerator, as EC2 reports it.
        vcpus: Virtual CPUs.
        memory_gib: Host memory.
        architecture: `x86_64` or `arm64`.
        network_gbps: Network bandwidth of the node over all cards.
        cards: Network cards in the order of their index.
        source: Where the row comes from.
        date: Month of the source.
    """

    name: str
    accelerator: str | None = None
    accelerators: int = 0
    accelerator_memory_mib: int = 0
    vcpus: int
    memory_gib: int
    architecture: str = "x86_64"
    network_gbps: float
    cards: tuple[NetworkCard, ...]
    source: str = SOURCE
    date: str = SOURCE_DATE

    @property
    def efa_interface_count(self) -> int:
        """Number of EFA interfaces that the type takes; 0 where EFA does not exist."""
        return sum(card.efa for card in self.cards)


def _cards(
    count: int, interfaces: int, *, efa: bool = True, first_without_efa: bool = False
) -> tuple[NetworkCard, ...]:
    return tuple(
        NetworkCard(interfaces=interfaces, efa=efa and not (first_without_efa and index == 0)) for index in range(count)
    )


_ROWS = (
    InstanceType(
        name="p4d.24xlarge",
        accelerator="A100",
        accelerators=8,
        accelerator_memory_mib=40960,
        vcpus=96,
        memory_gib=1152,
        network_gbps=400,
        cards=_cards(4, 15),
    ),
    InstanceType(
        name="p4de.24xlarge",
        accelerator="A100",
        accelerators=8,
        accelerator_memory_mib=81920,
        vcpus=96,
        memory_gib=1152,
        network_gbps=400,
        cards=_cards(4, 15),
    ),
    InstanceType(
        name="p5.48xlarge",
        accelerator="H100",
        accelerators=8,
        accelerator_memory_mib=81920,
        vcpus=192,
        memory_gib=2048,
        network_gbps=3200,
        cards=_cards(32, 2),
    ),
    InstanceType(
        name="p5e.48xlarge",
        accelerator="H200",
        accelerators=8,
        accelerator_memory_mib=144384,
        vcpus=192,
        memory_gib=2048,
        network_gbps=3200,
        cards=_cards(32, 2),
    ),
    InstanceType(
        name="p5en.48xlarge",
        accelerator="H200",
        accelerators=8,
        accelerator_memory_mib=144384,
        vcpus=192,
        memory_gib=2048,
        network_gbps=3200,
        cards=_cards(16, 4),
    ),
    InstanceType(
        name="p6-b200.48xlarge",
        accelerator="B200",
        accelerators=8,
        accelerator_memory_mib=183359,
        vcpus=192,
        memory_gib=2048,
        network_gbps=3200,
        cards=_cards(8, 4),
    ),
    InstanceType(
        name="p6-b300.48xlarge",
        accelerator="B300",
        accelerators=8,
        accelerator_memory_mib=275040,
        vcpus=192,
        memory_gib=4096,
        network_gbps=6400,
        cards=_cards(17, 4, first_without_efa=True),
    ),
    InstanceType(
        name="g6e.8xlarge",
        accelerator="L40S",
        accelerators=1,
        accelerator_memory_mib=45776,
        vcpus=32,
        memory_gib=256,
        network_gbps=25,
        cards=_cards(1, 8),
    ),
    InstanceType(
        name="g6e.12xlarge",
        accelerator="L40S",
        accelerators=4,
        accelerator_memory_mib=45776,
        vcpus=48,
        memory_gib=384,
        network_gbps=100,
        cards=_cards(1, 10),
    ),
    InstanceType(
        name="g6e.24xlarge",
        accelerator="L40S",
        accelerators=4,
        accelerator_memory_mib=45776,
        vcpus=96,
        memory_gib=768,
        network_gbps=200,
        cards=_cards(2, 10),
    ),
    InstanceType(
        name="g6e.48xlarge",
        accelerator="L40S",
        accelerators=8,
        accelerator_memory_mib=45776,
        vcpus=192,
        memory_gib=1536,
        network_gbps=400,
        cards=_cards(4, 10),
    ),
    InstanceType(
        name="trn1.32xlarge",
        accelerator="Trainium",
        accelerators=16,
        accelerator_memory_mib=32768,
        vcpus=128,
        memory_gib=512,
        network_gbps=800,
        cards=_cards(8, 5),
    ),
    InstanceType(name="m7i.large", vcpus=2, memory_gib=8, network_gbps=12.5, cards=_cards(1, 3, efa=False)),
    InstanceType(name="m7i.2xlarge", vcpus=8, memory_gib=32, network_gbps=12.5, cards=_cards(1, 4, efa=False)),
    InstanceType(name="c7i.4xlarge", vcpus=16, memory_gib=32, network_gbps=12.5, cards=_cards(1, 8, efa=False)),
)

INSTANCE_TYPES: dict[str, InstanceType] = {row.name: row for row in _ROWS}


def nearest_instance_types(name: str) -> list[str]:
    """Known names that resemble `name`, nearest first."""
    return difflib.get_close_matches(name, INSTANCE_TYPES, n=2, cutoff=0.5)


def instance_type(name: str) -> InstanceType:
    """The row of one instance type.

    Raises:
        NotFound: If the catalog has no such row; the message names the nearest rows and how to add one.
    """
    try:
        return INSTANCE_TYPES[name]
    except KeyError:
        near = nearest_instance_types(name)
        did_you_mean = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFound(
            f"catalog: instance type must be a known one, got {name}{did_you_mean} ({HOW_TO_ADD} says how to add one)"
        ) from None
