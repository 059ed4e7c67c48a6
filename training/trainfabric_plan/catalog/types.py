"""What the catalog says about an instance type, and what it says when a fact is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trainfabric_plan.errors import NotFound

Maker = Literal["nvidia", "aws"]
"""Who makes the accelerators: NVIDIA's need its driver and CUDA, those of AWS need Neuron."""

REFRESH = "trainfabric catalog refresh --region R"
NO_SOURCE = "no source was found"


class UnknownFact(NotFound):
    """A fact about an instance type that nobody could confirm, asked for by something that depends on it."""


@dataclass(frozen=True, kw_only=True)
class NetworkCard:
    """One network card.

    Attributes:
        interfaces: Most interfaces that EC2 attaches to this card.
        efa: Whether the card gets an EFA interface. A card that could carry one which adds no bandwidth gets none; the
            row's sources say so.
        ena: Whether the card takes an interface with an IP address.
    """

    interfaces: int
    efa: bool
    ena: bool = True


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One accelerator (a GPU or a Trainium chip), as its maker describes it.

    Attributes:
        name: The maker's name of the model, such as `H100`.
        maker: Who makes it.
        memory_mib: Memory, as EC2 reports it.
        peak_tflops: Dense peak in TFLOP/s by dtype (`fp64`, `fp32`, `tf32`, `bf16`, `fp16`, `fp8`, `fp4`, `int8`);
            a dtype that is absent is not supported in hardware or was not found.
        memory_gbytes_per_s: Bandwidth of its memory in GB/s, or `None`.
        source: Where the peaks and the bandwidth were read.
        date: When, or of what date the source is.
    """

    name: str
    maker: Maker
    memory_mib: int
    peak_tflops: Mapping[str, float] = field(default_factory=dict)
    memory_gbytes_per_s: float | None = None
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class Links:
    """How the accelerators of one node reach each other without the network.

    Attributes:
        kind: `NVLink`, `NeuronLink` or `PCIe`.
        generation: Of the links, or `None`.
        gbytes_per_s: What one accelerator sends and receives together over all its links, in GB/s, or `None`.
        source: Where it was read.
        date: When, or of what date the source is.
    """

    kind: Literal["NVLink", "NeuronLink", "PCIe"]
    generation: int | None = None
    gbytes_per_s: float | None = None
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """What trainfabric knows about one EC2 instance type.

    Attributes:
        name: EC2's name, such as `p5.48xlarge`.
        accelerator: Name of the accelerator, or `None` on CPU nodes.
        accelerators: Number of accelerators; one rank runs on each.
        accelerator_memory_mib: Memory of one accelerator, as EC2 reports it.
        maker: Who makes the accelerators; `None` on CPU nodes.
        accelerator_facts: Peaks and memory bandwidth of the accelerator.
        links: How the accelerators of the node are connected.
        vcpus: Virtual CPUs.
        memory_gib: Host memory.
        nvme_gb: Local NVMe storage in GB (10^9 bytes); 0 without.
        architecture: `x86_64` or `arm64`.
        network_gbps: Network bandwidth of the node over all cards; an upper bound where EC2 says "up to".
        efa_gbps: What EFA carries at most; 0 without EFA.
        ip_gbps: What IP traffic (ENA) reaches at most, with an interface on every card that helps.
        cards: Network cards in the order of their index, or `None` where nobody could confirm them.
        ip_cards: Cards that carry an ENA interface in the layout for bandwidth; the first is card 0. A single one
            means that the type has nothing to gain from more.
        gpudirect_rdma: Whether EFA reads and writes the accelerators' memory without a copy through the host.
        usage_classes: How EC2 sells the type: of `on-demand`, `spot`, `capacity-block`.
        cluster_placement: Whether the type starts in a cluster placement group.
        ultraserver_nodes: Instances of one UltraServer, by the sizes that EC2 sells, smallest first: capacity blocks of
            the type count UltraServers. Empty where it is sold by the instance, `None` where nobody could confirm it.
        source: Where the row comes from.
        date: Of what date the source is.
        sources: Where a single fact comes from if not from the row's source: name of the attribute → source, date.
        against_ec2: Attributes in which the row contradicts DescribeInstanceTypes, for the reason in `sources`.
        unknown: Facts that are `None` because nobody could confirm them: name of the attribute → why.
    """

    name: str
    accelerator: str | None = None
    accelerators: int = 0
    accelerator_memory_mib: int = 0
    maker: Maker | None = None
    accelerator_facts: Accelerator | None = None
    links: Links | None = None
    vcpus: int
    memory_gib: float
    nvme_gb: int | None = 0
    architecture: str = "x86_64"
    network_gbps: float
    efa_gbps: float | None = None
    ip_gbps: float | None = None
    cards: tuple[NetworkCard, ...] | None
    ip_cards: tuple[int, ...] = (0,)
    gpudirect_rdma: bool | None = None
    usage_classes: frozenset[str] | None = None
    cluster_placement: bool | None = None
    ultraserver_nodes: tuple[int, ...] | None = None
    source: str
    date: str
    sources: Mapping[str, str] = field(default_factory=dict)
    against_ec2: frozenset[str] = frozenset()
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def known_cards(self) -> tuple[NetworkCard, ...]:
        """The network cards.

        Raises:
            UnknownFact: If nobody could confirm them.
        """
        if self.cards is None:
            raise unknown_fact(self, "cards")
        return self.cards

    @property
    def efa_interface_count(self) -> int:
        """Number of EFA interfaces that the type takes; 0 where EFA does not exist.

        Raises:
            UnknownFact: If nobody could confirm the network cards.
        """
        return sum(card.efa for card in self.known_cards)


def unknown_fact(instance: InstanceType, name: str) -> UnknownFact:
    """The refusal of something that needs an unconfirmed fact: it says why, and how to get the fact from EC2."""
    reason = instance.unknown.get(name, NO_SOURCE)
    return UnknownFact(
        f"catalog: {name} of {instance.name} must be known, got nothing: {reason}; "
        f"run `{REFRESH}` in an account and region that offer the type"
    )
