from __future__ import annotations

import pytest

from trainfabric_plan.catalog import INSTANCE_TYPES, InstanceType, InterfaceType, NetworkCard, efa_interfaces

Row = tuple[int, int, str]


def rows(instance_type: str) -> list[Row]:
    return [(one.card, one.device, str(one.type)) for one in efa_interfaces(INSTANCE_TYPES[instance_type])]


def efa_only_from(first: int, last: int, device: int = 1) -> list[Row]:
    return [(card, device, "efa-only") for card in range(first, last + 1)]


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("p4d.24xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 3)]),
        ("p4de.24xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 3)]),
        ("p5.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 31)]),
        ("p5e.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 31)]),
        ("p5en.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 15)]),
        ("p6-b200.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 7)]),
        ("p6-b300.48xlarge", [(0, 0, "interface"), *efa_only_from(1, 16)]),
        ("g6e.8xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("g6e.12xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("g6e.24xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 1, "efa-only")]),
        ("g6e.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 3)]),
        ("trn1.32xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 7)]),
        ("m7i.large", [(0, 0, "interface")]),
        ("m7i.2xlarge", [(0, 0, "interface")]),
        ("c7i.4xlarge", [(0, 0, "interface")]),
    ],
)
def test_the_interfaces_of_a_type_are_these(instance_type: str, expected: list[Row]) -> None:
    assert rows(instance_type) == expected


def test_p5_has_thirty_three_interfaces_and_p6_b300_seventeen_of_which_sixteen_are_efa() -> None:
    assert len(rows("p5.48xlarge")) == 33
    assert len(rows("p6-b300.48xlarge")) == 17
    assert sum(kind == "efa-only" for _, _, kind in rows("p6-b300.48xlarge")) == 16


@pytest.mark.parametrize("instance", INSTANCE_TYPES.values(), ids=lambda instance: instance.name)
def test_no_layout_breaks_a_rule_of_ec2(instance: InstanceType) -> None:
    interfaces = efa_interfaces(instance)
    places = [(one.card, one.device) for one in interfaces]
    efa_cards = [one.card for one in interfaces if one.type is not InterfaceType.INTERFACE]

    assert places[0] == (0, 0)
    assert interfaces[0].type is not InterfaceType.EFA_ONLY
    assert len(set(places)) == len(places)
    assert len(set(efa_cards)) == len(efa_cards) == instance.efa_interface_count
    for one in interfaces:
        assert one.device < instance.cards[one.card].interfaces


def test_only_interfaces_with_an_address_use_one_of_the_subnet() -> None:
    assert [one.takes_address for one in efa_interfaces(INSTANCE_TYPES["p4d.24xlarge"])] == [True, *[False] * 4]


def test_a_single_card_that_takes_one_interface_carries_a_combined_efa() -> None:
    instance = InstanceType(
        name="hpc.example", vcpus=1, memory_gib=1, network_gbps=100, cards=(NetworkCard(interfaces=1, efa=True),)
    )

    (only,) = efa_interfaces(instance)

    assert (only.card, only.device, only.type) == (0, 0, InterfaceType.EFA)
    assert only.takes_address


def test_a_further_card_that_takes_one_interface_gets_it_at_device_index_0() -> None:
    cards = (NetworkCard(interfaces=2, efa=False), NetworkCard(interfaces=1, efa=True))
    instance = InstanceType(name="gb.example", vcpus=1, memory_gib=1, network_gbps=100, cards=cards)

    assert [(one.card, one.device, str(one.type)) for one in efa_interfaces(instance)] == [
        (0, 0, "interface"),
        (1, 0, "efa-only"),
    ]
