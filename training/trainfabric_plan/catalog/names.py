"""How EC2 names instance types, read by a parser of our own.

CDK's `ec2.InstanceType("p6-b300.48xlarge").architecture` throws `MalformedInstanceTypeIdentifier` (aws-cdk-lib 2.275.0,
seen by synthesising), because its pattern knows no dash in a family. The grammar here covers all 1,395 names of EC2's
DescribeInstanceTypes as moto 5.2.5 ships them, and p6e-gb200, which is not among them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainfabric_plan.errors import mistake

_SIZE = r"(?P<size>nano|micro|small|medium|\d*x?large|metal(?:-\d+xl)?)"
_SERIES = (
    re.compile(r"(?P<family>u)-(?P<options>\d+tb)(?P<generation>\d+)\." + _SIZE),
    re.compile(r"(?P<family>[a-z]+)(?P<generation>\d+)(?P<options>[a-z]*(?:-[a-z0-9]+)*)\." + _SIZE),
    re.compile(r"(?P<family>[a-z]+)(?P<generation>)(?P<options>(?:-[a-z0-9]+)+)\." + _SIZE),
)
"""High memory of the first generation (`u-6tb1`), the common form, and a family without a generation (`mac-m4`)."""


@dataclass(frozen=True, kw_only=True)
class InstanceName:
    """The parts of an instance type's name.

    Attributes:
        name: The whole name, such as `p6e-gb200.36xlarge`.
        series: All before the dot: `p6e-gb200`.
        family: Letters that say what it is for: `p`.
        generation: Number of the generation: 6; `None` where the name has none, as in `mac-m4.metal`.
        options: What follows the generation: `e-gb200`; of `p6-b300` it is `b300`.
        size: All after the dot: `36xlarge`.
    """

    name: str
    series: str
    family: str
    generation: int | None
    options: str
    size: str

    @property
    def is_metal(self) -> bool:
        """Whether the type is a whole machine without a hypervisor."""
        return self.size.startswith("metal")


def parse_instance_type(name: str) -> InstanceName:
    """The parts of an EC2 instance type's name.

    Raises:
        InvalidInput: If it is not a name as EC2 forms them. That EC2 has such a type is not checked.
    """
    for form in _SERIES:
        if found := form.fullmatch(name):
            generation = found["generation"]
            return InstanceName(
                name=name,
                series=name.partition(".")[0],
                family=found["family"],
                generation=int(generation) if generation else None,
                options=found["options"].removeprefix("-"),
                size=found["size"],
            )
    raise mistake("catalog", "instance type", "a name such as p5.48xlarge", name or "an empty text")
