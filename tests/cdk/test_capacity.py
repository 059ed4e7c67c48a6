from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import aws_cdk as cdk
import pytest

from trainfabric_cdk import Capacity
from trainfabric_plan.errors import InvalidInput


def test_spot_and_on_demand_are_told_apart() -> None:
    assert (Capacity.spot().is_spot, Capacity.on_demand().is_spot) == (True, False)


@pytest.mark.parametrize("price", [0, -1.5, math.inf, math.nan, "12.5", True])
def test_a_price_that_buys_nothing_is_refused(price: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        Capacity.spot(price)

    assert (
        str(refused.value)
        == f"Capacity.spot: max_price must be a number of more than 0 US dollars per hour, got {price!r}"
    )


def test_a_price_that_is_settled_at_deploy_time_is_not_judged_and_stays_a_reference(stack: cdk.Stack) -> None:
    capacity = Capacity.spot(cdk.Token.as_number(cdk.Fn.ref("Price")))

    options = stack.resolve(capacity.market_options())
    assert options["spotOptions"]["maxPrice"] == {"Ref": "Price"}


RESERVED: dict[str, Callable[..., Capacity]] = {
    "reservation": partial(Capacity.reservation, "cr-0123456789abcdef0"),
    "reservation_group": partial(
        Capacity.reservation_group, "arn:aws:resource-groups:us-east-1:123456789012:group/ours"
    ),
    "interruptible_reservation": partial(Capacity.interruptible_reservation, "cr-0123456789abcdef0"),
}


@pytest.mark.parametrize("kind", RESERVED)
@pytest.mark.parametrize("name", [5, "", "x" * 256, "größer"])
def test_what_names_no_placement_group_is_refused(kind: str, name: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        RESERVED[kind](placement_group_name=name)

    assert str(refused.value) == (
        f"Capacity.{kind}: placement_group_name must be the name of a placement group: 1 to 255 ASCII characters, "
        f"got {name!r}; leave it out if there is none"
    )


@pytest.mark.parametrize("kind", RESERVED)
def test_a_placement_group_settled_when_deployed_is_not_judged(kind: str) -> None:
    name = cdk.Fn.import_value("group")

    assert RESERVED[kind](placement_group_name=name).placement_group_name == name
