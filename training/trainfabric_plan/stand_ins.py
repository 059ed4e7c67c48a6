"""Values that the CDK puts in an app's first synthesis in place of what a lookup finds later."""

from __future__ import annotations

import re

_STAND_INS = re.compile(
    r"ami-1234|vpc-12345|[ips]-1234[0-9a-z]|rtb-12345[sp]?|sg-12345678|1\.2\.3\.4/5|dummy\d[a-z]|dummy-value-for-.*",
    re.DOTALL,
)


def is_stand_in(value: object) -> bool:
    """Whether a value is what `from_lookup`, `value_from_lookup`, `availability_zones` and the like give at first.

    The command line looks only after an app that did not fail, so that whoever refuses them refuses for ever
    (aws-cdk-lib 2.275, read 2026-12).
    """
    return isinstance(value, str) and _STAND_INS.fullmatch(value) is not None
