"""Reads an entry of EC2's DescribeInstanceTypes into the catalog's words.

Source: EC2 API 2016-11-15 as in botocore 1.44.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainfabric_plan.catalog.overrides import FACTS, Card, Described
from trainfabric_plan.catalog.types import InstanceType

Difference = tuple[str, str, str]
"""Name of the fact, what the catalog says, what EC2 says."""

_MAKERS = {"NVIDIA": "nvidia", "AWS": "aws"}


def described(entry: Mapping[str, Any], *, region: str, date: str) -> Described:
    """What EC2 said of one type in one region."""
    network, storage = entry["NetworkInfo"], entry.get("InstanceStorageInfo", {})
    architectures = entry["ProcessorInfo"]["SupportedArchitectures"]
    return Described(
        region=region,
        date=date,
        source="DescribeInstanceTypes",
        **_accelerators(entry),
        vcpus=entry["VCpuInfo"]["DefaultVCpus"],
        memory_gib=entry["MemoryInfo"]["SizeInMiB"] / 1024,
        nvme_gb=storage.get("TotalSizeInGB", 0),
        architecture="arm64" if "arm64" in architectures else "x86_64",
        network_gbps=network_gbps(network["NetworkPerformance"]),
        cards=_cards(network),
        usage_classes=sorted(entry["SupportedUsageClasses"]),
        cluster_placement="cluster" in entry["PlacementGroupInfo"]["SupportedStrategies"],
    )


def differences(row: InstanceType, told: Described) -> list[Difference]:
    """The facts in which EC2 says something else than the row, in the order of the row."""
    found: list[Difference] = []
    for fact in FACTS:
        ours, theirs = _text(getattr(row, fact)), _text(getattr(told, fact))
        if ours != theirs:
            found.append((fact, ours, theirs))
    return found


def network_gbps(text: str) -> float:
    """`3200 Gigabit`, `4x 100 Gigabit` and the bound of `Up to 12.5 Gigabit` as a number; 0 for words (`High`)."""
    amount, _, unit = text.removeprefix("Up to ").rpartition(" ")
    count, times, each = amount.rpartition("x")
    if unit != "Gigabit":
        return 0
    return float(each) * (int(count) if times else 1)


def _accelerators(entry: Mapping[str, Any]) -> dict[str, Any]:
    gpus = entry.get("GpuInfo", {}).get("Gpus", [])
    chips = entry.get("NeuronInfo", {}).get("NeuronDevices", [])
    if not (gpus or chips):
        return {}
    first = (gpus or chips)[0]
    return {
        "accelerator": first["Name"],
        "accelerators": first["Count"],
        "accelerator_memory_mib": first.get("MemoryInfo", {}).get("SizeInMiB", 0),
        "maker": _MAKERS.get(first.get("Manufacturer", "AWS")),
    }


def _cards(network: Mapping[str, Any]) -> list[Card]:
    """EFA goes to the cards that take nothing else, if there are any, else to all that take it, up to the most."""
    cards = sorted(network["NetworkCards"], key=lambda card: int(card["NetworkCardIndex"]))
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0) if network.get("EfaSupported") else 0
    takes = [_takes(card, index, most, len(cards)) for index, card in enumerate(cards)]
    alone = [kinds == {"efa-only"} for kinds in takes]
    made: list[Card] = []
    for card, kinds, only in zip(cards, takes, alone, strict=True):
        free = sum(one.efa for one in made) < most
        efa = free and (only if any(alone) else "efa-only" in kinds)
        made.append(Card(interfaces=card["MaximumNetworkInterfaces"], efa=efa, ena="interface" in kinds))
    return made


def _takes(card: Mapping[str, Any], index: int, most: int, cards: int) -> set[str]:
    """Kinds of interface; where EC2 does not tell them, card 0 has no EFA if there are fewer than cards."""
    if "InterfaceTypes" in card:
        return set(card["InterfaceTypes"])
    return {"interface", "efa-only"} if most and (index > 0 or most == cards) else {"interface"}


def _text(value: Any) -> str:
    if isinstance(value, tuple | list):
        return _cards_text(value)
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cards_text(cards: Any) -> str:
    if cards and isinstance(cards[0], str):
        return ", ".join(sorted(cards))
    with_efa = [str(index) for index, card in enumerate(cards) if card.efa]
    most = sorted({card.interfaces for card in cards})
    return f"{len(cards)} of {' or '.join(map(str, most))} interfaces, EFA on {_ranges(with_efa)}"


def _ranges(indexes: list[str]) -> str:
    return "none" if not indexes else ",".join(indexes) if len(indexes) < 4 else f"{indexes[0]}…{indexes[-1]}"
