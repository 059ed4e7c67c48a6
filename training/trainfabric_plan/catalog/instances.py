"""Instance types that trainfabric knows: the rows of this package, and those of the user's override file before them.

Network cards, interfaces per card, EFA counts, vCPU, memory and usage classes come from DescribeInstanceTypes, as
Karpenter's generated data (github.com/aws/karpenter-provider-aws, 2026-08) and moto 5.2.5 publish them; a test compares
each row with the latter and names whose error a difference is.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from trainfabric_plan.catalog.table import read_instance_types
from trainfabric_plan.catalog.types import InstanceType
from trainfabric_plan.errors import NotFound

OVERRIDES_FILE = "trainfabric.catalog.json"
OVERRIDES_VARIABLE = "TRAINFABRIC_CATALOG"
HOW_TO_ADD = "docs/how-to/add-an-instance-type.md"

HEAD_NODES = {"x86_64": "m7i.2xlarge", "arm64": "m7g.2xlarge"}
"""A type for the head node of a cluster, by the architecture of its nodes."""

INSTANCE_TYPES: dict[str, InstanceType] = read_instance_types()


def nearest_instance_types(name: str) -> list[str]:
    """Known names that resemble `name`, in whichever case, nearest first; those of the family that it names alone."""
    wanted = name.lower()
    family = [one for one in INSTANCE_TYPES if one.startswith(f"{wanted}.")]
    return family[:2] or difflib.get_close_matches(wanted, INSTANCE_TYPES, n=2, cutoff=0.5)


def find_instance_type(name: str) -> InstanceType | None:
    """The row of one instance type, with the user's own facts in it, or `None` if nobody knows the type.

    Raises:
        InvalidInput: If the user's override file is not as `catalog refresh` writes it.
    """
    row = INSTANCE_TYPES.get(name)
    if not _has_overrides():
        return row
    from trainfabric_plan.catalog.overrides import overriding_facts, with_facts  # pydantic, which few need here

    told = overriding_facts().get(name)
    return row if told is None else with_facts(row, name, told)


def instance_type(name: str) -> InstanceType:
    """The row of one instance type, with the user's own facts in it.

    Raises:
        NotFound: If the catalog has no such row; the message names the nearest rows and how to add one.
        InvalidInput: If the user's override file is not as `catalog refresh` writes it.
    """
    row = find_instance_type(name)
    if row is None:
        near = nearest_instance_types(name)
        did_you_mean = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFound(
            f"catalog: instance type must be a known one, got {name}{did_you_mean} ({HOW_TO_ADD} says how to add one)"
        )
    return row


def _has_overrides() -> bool:
    return bool(os.environ.get(OVERRIDES_VARIABLE)) or Path(OVERRIDES_FILE).exists()
