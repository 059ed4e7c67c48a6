from __future__ import annotations

import pytest

from trainfabric_cli.account.market import block_hours
from trainfabric_cli.account.quotas import vcpu_quota


@pytest.mark.parametrize(
    ("hours", "block"),
    [(0.5, 24), (24, 24), (25, 48), (14 * 24, 336), (14 * 24 + 1, 21 * 24), (181 * 24, 182 * 24), (182 * 24, 182 * 24)],
)
def test_a_block_is_asked_for_in_days_up_to_14_and_in_weeks_up_to_182(hours: float, block: int) -> None:
    assert block_hours(hours) == block


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("p4d.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5en.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("p6-b200.48xlarge", "L-417A185B", None),
        ("p6e-gb200.36xlarge", "L-417A185B", None),
        ("g6e.48xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("trn2.48xlarge", "L-2C3B7624", "L-6B0D517C"),
        ("inf2.48xlarge", "L-1945791B", "L-B5D1601B"),
        ("hpc7a.96xlarge", "L-F7808C92", None),
        ("c7i.4xlarge", "L-1216C47A", "L-34B43A08"),
        ("m7i-flex.large", "L-1216C47A", "L-34B43A08"),
        ("im4gn.large", "L-1216C47A", "L-34B43A08"),
        ("x2gd.metal", "L-7295265B", "L-E3A00192"),
        ("u-6tb1.metal", "L-43DA4232", None),
        ("dl1.24xlarge", "L-6E869C2A", "L-85EED4F7"),
        ("qq1.large", None, None),
        ("7", None, None),
    ],
)
def test_each_family_has_its_quotas(instance_type: str, on_demand: str | None, spot: str | None) -> None:
    found = vcpu_quota(instance_type, spot=False), vcpu_quota(instance_type, spot=True)

    assert tuple(one and one.code for one in found) == (on_demand, spot)
