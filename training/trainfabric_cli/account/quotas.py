"""EC2's quotas of vCPUs by family of instance types.

Source: EC2 user guide, On-Demand Instance quotas and Spot Instance quotas, whose tables link each name to its code; the
codes of 2026 confirmed in public records of ListServiceQuotas, read 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota of Service Quotas.

    Attributes:
        code: Its code, such as L-417A185B.
        name: Its name in the console.
        service: Its service's code.
    """

    code: str
    name: str
    service: str = "ec2"


def _ec2(code: str, name: str) -> Quota:
    return Quota(code=code, name=name)


_STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"

_ON_DEMAND: Mapping[str, Quota] = MappingProxyType(
    {
        "dl": _ec2("L-6E869C2A", "Running On-Demand DL instances"),
        "f": _ec2("L-74FC7D96", "Running On-Demand F instances"),
        "g": _ec2("L-DB2E81BA", "Running On-Demand G and VT instances"),
        "hpc": _ec2("L-F7808C92", "Running On-Demand HPC instances"),
        "inf": _ec2("L-1945791B", "Running On-Demand Inf instances"),
        "p": _ec2("L-417A185B", "Running On-Demand P instances"),
        "standard": _ec2("L-1216C47A", f"Running On-Demand {_STANDARD} instances"),
        "trn": _ec2("L-2C3B7624", "Running On-Demand Trn instances"),
        "u": _ec2("L-43DA4232", "Running On-Demand High Memory instances"),
        "x": _ec2("L-7295265B", "Running On-Demand X instances"),
    }
)

_SPOT: Mapping[str, Quota] = MappingProxyType(
    {
        "dl": _ec2("L-85EED4F7", "All DL Spot Instance Requests"),
        "f": _ec2("L-88CF9481", "All F Spot Instance Requests"),
        "g": _ec2("L-3819A6DF", "All G and VT Spot Instance Requests"),
        "inf": _ec2("L-B5D1601B", "All Inf Spot Instance Requests"),
        "p2": _ec2("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
        "p5": _ec2("L-C4BD4855", "All P5 Spot Instance Requests"),
        "standard": _ec2("L-34B43A08", f"All {_STANDARD} Spot Instance Requests"),
        "trn": _ec2("L-6B0D517C", "All Trn Spot Instance Requests"),
        "x": _ec2("L-E3A00192", "All X Spot Instance Requests"),
    }
)

_FAMILIES = {"gr": "g", "vt": "g", "im": "standard", "is": "standard"} | dict.fromkeys("acdhimrtz", "standard")
_SPOT_OF_P = {"p2": "p2", "p3": "p2", "p4": "p2", "p5": "p5"}


def vcpu_quota(instance_type: str, *, spot: bool) -> Quota | None:
    """The quota that counts an instance type's vCPUs; `None` where no source names one, as for spot P6 and spot HPC."""
    found = re.match(r"([a-z]+)-?(\d*)", instance_type)
    if found is None:
        return None
    letters, generation = found.groups()
    family = _FAMILIES.get(letters, letters)
    if not spot:
        return _ON_DEMAND.get(family)
    return _SPOT.get(_SPOT_OF_P.get(f"p{generation}", "")) if family == "p" else _SPOT.get(family)
