"""What of a configuration is settled before a deploy."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from trainfabric_plan.parallelcluster.known import is_settled

FIRST, LAST = (struct.unpack(">d", bytes.fromhex(bits))[0] for bits in ("fbff000000000000", "fbffffffffffffff"))


@pytest.mark.parametrize(
    "value",
    [
        "${Token[Name.1]}",
        "s3://${Token[Name.1]}/setup.sh",
        "#{Token[Names.1]}",
        FIRST,
        LAST,
        "p-12345",
        "ami-1234",
        "dummy-value-for-/ours/file-system",
        {"Ref": "Subnet"},
        {"Fn::GetAtt": ["Group", "GroupId"]},
    ],
)
def test_tokens_and_functions_of_cloudformation_are_settled_later(value: Any) -> None:
    assert not is_settled(value)


@pytest.mark.parametrize("value", ["subnet-1", "", -1.0, 4, True, None, {"Name": "train"}, {}, ["a"]])
def test_whatever_else_stands_there_is_settled(value: Any) -> None:
    assert is_settled(value)
