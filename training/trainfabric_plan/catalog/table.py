"""Reads the table of instance types (`instances.csv`) and the remarks on it (`remarks.csv`), strictly.

`-` in a cell is "has none"; `?` is "nobody could confirm it" and needs a remark that says why. Cards are written `32x2`
(32 cards of two interfaces each), their indexes `0-31`, every fourth of them `0-28/4`. Of several remarks on one fact
the first holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from trainfabric_plan.catalog.accelerators import ACCELERATORS, LINKS
from trainfabric_plan.catalog.lines import read_lines
from trainfabric_plan.catalog.types import InstanceType, NetworkCard

SOURCE = "Karpenter zz_generated.vpclimits.go and instance-type reference; moto 5.2.5 DescribeInstanceTypes"
DATE = "2026-08"

_NONE, _UNKNOWN = "-", "?"


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Where a fact comes from if not from the table's source, or why it is unknown.

    Attributes:
        types: Patterns of the names that it is about.
        attribute: Attribute of `InstanceType`.
        kind: `source`; `against`, a source whose word goes before EC2's; or `unknown`.
        text: The source with its date, or the reason.
    """

    types: tuple[str, ...]
    attribute: str
    kind: str
    text: str

    def is_about(self, name: str) -> bool:
        """Whether one of the patterns matches this instance type."""
        return any(fnmatchcase(name, pattern) for pattern in self.types)


def read_instance_types() -> dict[str, InstanceType]:
    """All rows by name, in the order of the table.

    Raises:
        ValueError: If the table or its remarks are not as the table demands, which is an error of ours.
    """
    remarks = [
        Remark(types=tuple(line["types"].split()), attribute=line["attribute"], kind=line["kind"], text=line["text"])
        for line in read_lines("remarks.csv")
    ]
    rows = [_row(line, remarks) for line in read_lines("instances.csv")]
    return {row.name: row for row in rows}


def _row(line: Mapping[str, str], remarks: list[Remark]) -> InstanceType:
    name, facts = line["name"], dict(line)
    efa, efa_only = _indexes(facts.pop("efa_cards")), _indexes(facts.pop("efa_only_cards"))
    unknown = {column: _reason(name, column, remarks) for column, cell in line.items() if cell == _UNKNOWN}
    if efa_only:
        unknown["combined_interfaces"] = _reason(name, "combined_interfaces", remarks)
    named = facts.pop("accelerator")
    accelerator = None if named == _NONE else ACCELERATORS[named]
    read: dict[str, Any] = {column: None if cell == _UNKNOWN else _READ[column](cell) for column, cell in facts.items()}
    if read["cards"] is not None:
        read["cards"] = tuple(
            NetworkCard(interfaces=most, efa=index in efa, ena=index not in efa_only)
            for index, most in enumerate(read["cards"])
        )
    return InstanceType(
        **read,
        accelerator=accelerator.name if accelerator else None,
        accelerator_memory_mib=accelerator.memory_mib if accelerator else 0,
        maker=accelerator.maker if accelerator else None,
        accelerator_facts=accelerator,
        source=SOURCE,
        date=DATE,
        sources=_sources(name, remarks),
        against_ec2=frozenset(one.attribute for one in remarks if one.kind == "against" and one.is_about(name)),
        unknown=unknown,
    )


def _reason(name: str, column: str, remarks: list[Remark]) -> str:
    for one in remarks:
        if (one.kind, one.attribute) == ("unknown", column) and one.is_about(name):
            return one.text
    raise ValueError(f"remarks.csv: {column} of {name} must have a reason, got none")


def _sources(name: str, remarks: list[Remark]) -> dict[str, str]:
    about = [one for one in reversed(remarks) if one.kind in ("source", "against") and one.is_about(name)]
    return {one.attribute: one.text for one in about}


def _number(cell: str) -> float:
    value = float(cell)
    return int(value) if value.is_integer() else value


def _indexes(cell: str) -> tuple[int, ...]:
    if cell == _NONE:
        return ()
    span, _, step = cell.partition("/")
    first, _, last = span.partition("-")
    return tuple(range(int(first), int(last or first) + 1, int(step or 1)))


def _interfaces(cell: str) -> list[int]:
    pairs = (part.split("x") for part in cell.split())
    return [int(most) for count, most in pairs for _ in range(int(count))]


def _truth(cell: str) -> bool | None:
    return {"yes": True, "no": False, _NONE: None}[cell]


_READ: Mapping[str, Callable[[str], Any]] = {
    "name": str,
    "accelerators": int,
    "vcpus": int,
    "memory_gib": _number,
    "nvme_gb": int,
    "architecture": str,
    "network_gbps": _number,
    "efa_gbps": _number,
    "ip_gbps": _number,
    "cards": _interfaces,
    "ip_cards": _indexes,
    "links": lambda cell: None if cell == _NONE else LINKS[cell],
    "gpudirect_rdma": _truth,
    "usage_classes": lambda cell: frozenset(cell.split()),
    "cluster_placement": _truth,
    "ultraserver_nodes": lambda cell: () if cell == _NONE else tuple(map(int, cell.split())),
}
