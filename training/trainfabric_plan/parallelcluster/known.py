"""Values that are settled only when a stack is deployed, which nobody judges before."""

from __future__ import annotations

from collections.abc import Mapping

from trainfabric_plan.stand_ins import is_stand_in

_TOKENS = ("${Token[", "#{Token[")
_NUMBER_TOKENS = -1e288
"""Numbers that stand for tokens lie below it: doubles whose upper 16 bits are FBFF (aws-cdk-lib,
core/lib/private/encoding, read 2026-12-01)."""


def is_settled(value: object) -> bool:
    """Whether a value stands in the file: no token of the CDK, no function of CloudFormation, and nothing in place of
    what a lookup finds later."""
    if isinstance(value, str):
        return not is_stand_in(value) and not any(mark in value for mark in _TOKENS)
    if isinstance(value, float):
        return value > _NUMBER_TOKENS
    if isinstance(value, Mapping) and len(value) == 1:
        (key,) = value
        return not (key == "Ref" or str(key).startswith("Fn::"))
    return True
