"""Prices of the catalog: each with its source and date, and absent where nobody could confirm one."""

from __future__ import annotations

from trainfabric_plan.catalog import INSTANCE_TYPES, on_demand_price, spot_saving
from trainfabric_plan.catalog.prices import fsx_lustre_price, nat_gateway_price, spot_saving_regions


def test_every_price_is_positive_and_names_its_source_and_date() -> None:
    prices = {name: price for name in INSTANCE_TYPES if (price := on_demand_price(name))}

    without = {name.partition(".")[0] for name in INSTANCE_TYPES if name not in prices}
    assert without == {"p5e", "p6e-gb200", "g7", "g7e", "trn2", "trn2u", "hpc6a", "hpc6id", "hpc7a", "hpc8a"}
    for price in prices.values():
        assert price.value > 0
        assert price.source.startswith("github.com/aws/karpenter-provider-aws")
        assert price.date in {"2026-01-19", "2026-02-09", "2026-07-20"}


def test_every_spot_saving_is_a_share_of_a_known_price_and_names_its_source_and_date() -> None:
    savings = {
        (name, region): spot_saving(name, region) for name in INSTANCE_TYPES for region in spot_saving_regions(name)
    }

    assert {name for name, _ in savings} == {
        *("p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5en.48xlarge"),
        *("g5.48xlarge", "g6.48xlarge", "g6e.48xlarge", "trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"),
    }
    for (name, _), saving in savings.items():
        assert saving
        assert 0 < saving.value < 1
        assert saving.date == "2025-06-28"
        assert saving.source == "Spot Advisor data in github.com/alexei-led/spotinfo at 5eedf20"
        assert on_demand_price(name)


def test_prices_of_storage_and_network_name_their_source_and_an_unconfirmed_one_is_absent() -> None:
    lustre, nat = fsx_lustre_price(125), nat_gateway_price()

    assert lustre and (lustre.value, lustre.source, lustre.date) == (
        0.145,
        "c3x.dev aws_fsx_lustre_file_system",
        "undated, read 2026-11",
    )
    assert (nat.value, nat.date) == (0.045, "2026-02")
    assert fsx_lustre_price(250) is None
    assert on_demand_price("p5e.48xlarge") is None
    assert spot_saving("p6-b300.48xlarge", "us-east-1") is None
