"""Values that are settled only when a stack is deployed, which nobody judges before."""

from __future__ import annotations

from collections.abc import Mapping

_TOKEN = "${Token["


def is_settled(value: object) -> bool:
    """Whether a value stands in the file: no token of the CDK, and no function of CloudFormation."""
    if isinstance(value, str):
        return _TOKEN not in value
    if isinstance(value, Mapping) and len(value) == 1:
        (key,) = value
        return not (key == "Ref" or str(key).startswith("Fn::"))
    return True
