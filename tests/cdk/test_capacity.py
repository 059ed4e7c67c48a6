from __future__ import annotations

import pytest

from trainfabric_cdk import Capacity
from trainfabric_plan.errors import InvalidInput


def test_spot_and_on_demand_are_told_apart() -> None:
    assert (Capacity.spot().is_spot, Capacity.on_demand().is_spot) == (True, False)


@pytest.mark.parametrize("price", [0, -1.5])
def test_a_price_that_buys_nothing_is_refused(price: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        Capacity.spot(price)

    assert str(refused.value) == f"Capacity.spot: max_price must be more than 0 US dollars per hour, got {price}"
