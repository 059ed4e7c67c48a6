"""Instance types that trainfabric knows: the rows of this package, and those of the user's override file before them.

Network cards, interfaces per card, EFA counts, vCPU, memory and usage classes come from DescribeInstanceTypes, as
Karpenter's generated data (github.com/aws/karpenter-provider-aws, 2026-08) and moto 5.2.5 publish them; a test compares
each row with the latter and names whose error a difference is.
"""

from __future__ import annotations

import difflib

from trainfabric_plan.catalog.table import read_instance_types
from trainfabric_plan.catalog.types import InstanceType
from trainfabric_plan.errors import NotFound

HOW_TO_ADD = "docs/how-to/add-an-instance-type.md"

INSTANCE_TYPES: dict[str, InstanceType] = read_instance_types()


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
