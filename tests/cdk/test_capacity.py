from __future__ import annotations

import math
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
