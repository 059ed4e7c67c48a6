from __future__ import annotations

import pytest

from trainfabric_plan.catalog import (
    INSTANCE_TYPES,
    InstanceType,
    InterfaceType,
    NetworkCard,
    UnknownFact,
    addresses_per_node,
    efa_interfaces,
    offers_bandwidth,
)

Row = tuple[int, int, str]


def rows(instance_type: str) -> list[Row]:
    return [(one.card, one.device, str(one.type)) for one in efa_interfaces(INSTANCE_TYPES[instance_type])]


def example(*cards: NetworkCard, known: bool = True, ip_cards: tuple[int, ...] = (0,)) -> InstanceType:
    return InstanceType(
        name="x1.example",
        vcpus=1,
        memory_gib=1,
        network_gbps=100,
        cards=cards if known else None,
        ip_cards=ip_cards,
        source="made up",
        date="2026-11",
        unknown={} if known else {"cards": "no public source lists them"},
    )


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
        ("p3dn.24xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("p5.4xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("p6e-gb200.36xlarge", [(0, 0, "interface"), *((card, 0, "efa-only") for card in range(1, 17, 2))]),
        ("g5.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("g5.xlarge", [(0, 0, "interface")]),
        ("g7e.24xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 1, "efa-only")]),
        ("trn1n.32xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 15)]),
        ("trn2.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), *efa_only_from(1, 15)]),
        ("trn2.3xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("hpc6a.48xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("hpc6id.32xlarge", [(0, 0, "efa"), (1, 0, "efa-only")]),
        ("hpc7a.96xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 1, "efa-only")]),
        ("hpc7g.16xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("hpc8a.96xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 1, "efa-only")]),
        ("c6in.32xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 1, "efa-only")]),
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
        assert one.device < instance.known_cards[one.card].interfaces


def test_only_interfaces_with_an_address_use_one_of_the_subnet() -> None:
    assert [one.takes_address for one in efa_interfaces(INSTANCE_TYPES["p4d.24xlarge"])] == [True, *[False] * 4]


def test_a_single_card_that_takes_one_interface_carries_a_combined_efa() -> None:
    instance = example(NetworkCard(interfaces=1, efa=True))

    (only,) = efa_interfaces(instance)

    assert (only.card, only.device, only.type) == (0, 0, InterfaceType.EFA)
    assert only.takes_address


def test_a_further_card_that_takes_one_interface_gets_it_at_device_index_0() -> None:
    instance = example(NetworkCard(interfaces=2, efa=False), NetworkCard(interfaces=1, efa=True))

    assert [(one.card, one.device, str(one.type)) for one in efa_interfaces(instance)] == [
        (0, 0, "interface"),
        (1, 0, "efa-only"),
    ]


def test_for_bandwidth_p5_has_an_ena_interface_on_every_fourth_card() -> None:
    layout = efa_interfaces(INSTANCE_TYPES["p5.48xlarge"], mode="bandwidth")

    with_address = [(one.card, one.device) for one in layout if one.takes_address]
    efa_only = {one.card: one.device for one in layout if not one.takes_address}
    assert with_address == [(0, 0), *((card, 1) for card in range(4, 32, 4))]
    assert efa_only == {card: 0 if card and card % 4 == 0 else 1 for card in range(32)}
    assert addresses_per_node(layout) == 8
    assert addresses_per_node(efa_interfaces(INSTANCE_TYPES["p5.48xlarge"])) == 1


@pytest.mark.parametrize(("instance_type", "cards"), [("p6-b200.48xlarge", 8), ("p6-b300.48xlarge", 17)])
def test_for_bandwidth_p6_has_an_ena_interface_on_every_card(instance_type: str, cards: int) -> None:
    layout = efa_interfaces(INSTANCE_TYPES[instance_type], mode="bandwidth")

    assert [one.card for one in layout if one.takes_address] == list(range(cards))
    assert [(one.card, one.device) for one in layout if not one.takes_address][-1] == (cards - 1, 0)


def test_for_bandwidth_p6e_gb200_has_ena_interfaces_on_the_even_cards_and_efa_on_the_odd_ones() -> None:
    layout = efa_interfaces(INSTANCE_TYPES["p6e-gb200.36xlarge"], mode="bandwidth")

    assert [(one.card, one.device) for one in layout if one.takes_address] == [
        (0, 0),
        *((card, 1) for card in range(2, 17, 2)),
    ]
    assert [one.card for one in layout if not one.takes_address] == list(range(1, 17, 2))


def test_the_combined_layout_of_cards_that_take_efa_only_is_refused_with_the_reason() -> None:
    with pytest.raises(UnknownFact) as caught:
        efa_interfaces(INSTANCE_TYPES["p6e-gb200.36xlarge"], combined=True)

    assert str(caught.value) == (
        "catalog: combined_interfaces of p6e-gb200.36xlarge must be known, got nothing: its odd cards take efa-only "
        "alone (EC2 user guide), and no source says what AWS PCS passes on there; "
        "run `trainfabric catalog refresh --region R` in an account and region that offer the type"
    )


def test_for_bandwidth_a_further_card_that_takes_one_interface_carries_a_combined_efa() -> None:
    instance = example(NetworkCard(interfaces=2, efa=True), NetworkCard(interfaces=1, efa=True), ip_cards=(0, 1))

    assert [(one.card, one.device, str(one.type)) for one in efa_interfaces(instance, mode="bandwidth")] == [
        (0, 0, "interface"),
        (0, 1, "efa-only"),
        (1, 0, "efa"),
    ]


def test_a_type_that_gains_nothing_from_more_addresses_has_one_layout() -> None:
    single = INSTANCE_TYPES["g6e.12xlarge"]

    assert not offers_bandwidth(single)
    assert efa_interfaces(single, mode="bandwidth") == efa_interfaces(single)
    assert offers_bandwidth(INSTANCE_TYPES["p5.48xlarge"])


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("p5.48xlarge", [(0, 0, "efa"), *((card, 1, "efa") for card in range(1, 32))]),
        ("p6-b300.48xlarge", [(0, 0, "interface"), *((card, 1, "efa") for card in range(1, 17))]),
        ("g6e.8xlarge", [(0, 0, "efa")]),
        ("m7i.large", [(0, 0, "interface")]),
    ],
)
def test_combined_every_card_with_efa_has_one_interface_that_carries_both(
    instance_type: str, expected: list[Row]
) -> None:
    layout = efa_interfaces(INSTANCE_TYPES[instance_type], combined=True)

    assert [(one.card, one.device, str(one.type)) for one in layout] == expected
    assert addresses_per_node(layout) == len(expected)


def test_the_layout_of_a_type_whose_cards_nobody_could_confirm_is_refused_with_the_reason_and_the_remedy() -> None:
    with pytest.raises(UnknownFact) as caught:
        efa_interfaces(example(known=False))

    assert str(caught.value) == (
        "catalog: cards of x1.example must be known, got nothing: no public source lists them; "
        "run `trainfabric catalog refresh --region R` in an account and region that offer the type"
    )
