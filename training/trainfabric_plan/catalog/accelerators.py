"""Accelerators, and how those of one node are linked: what their makers say of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from trainfabric_plan.catalog.types import Accelerator, Links

_nvidia = partial(Accelerator, maker="nvidia", source="moto 5.2.5 DescribeInstanceTypes", date="2026-08")
_aws = partial(Accelerator, maker="aws", source="moto 5.2.5 DescribeInstanceTypes", date="2026-08")

ACCELERATORS: Mapping[str, Accelerator] = {
    "A100 40GB": _nvidia(name="A100", memory_mib=40960),
    "A100 80GB": _nvidia(name="A100", memory_mib=81920),
    "H100": _nvidia(name="H100", memory_mib=81920),
    "H200": _nvidia(name="H200", memory_mib=144384),
    "B200": _nvidia(name="B200", memory_mib=183359),
    "B300": _nvidia(name="B300", memory_mib=275040),
    "L40S": _nvidia(name="L40S", memory_mib=45776),
    "Trainium": _aws(name="Trainium", memory_mib=32768),
}
"""By the name that the table of instance types uses."""

LINKS: Mapping[str, Links] = {}
"""By the name that the table of instance types uses."""
