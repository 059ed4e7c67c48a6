"""ParallelCluster 3.16.1's own launch templates, on EC2's descriptions as moto 5.2.5 has them, against our layouts.

The oracle is another program of AWS with the same purpose. Where it decides otherwise, or knows a type that we do not,
one of the tables below says why; an entry that is no longer needed fails as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.oracle.conftest import Layout, parallelcluster_layouts
from trainfabric_plan.catalog import INSTANCE_TYPES, InstanceType, NetworkCard, efa_interfaces

EITHER_CARD = (
    "EC2 takes one EFA interface, and moto's data offers it on both cards: we use card 0, beside the primary, "
    "ParallelCluster reads off fewer EFA interfaces than cards that card 0 has none and uses card 1"
)

DIFFERENCES = {
    "i7ie.48xlarge": EITHER_CARD,
    "i7ie.metal-48xl": EITHER_CARD,
    "i8ge.48xlarge": EITHER_CARD,
    "i8ge.metal-48xl": EITHER_CARD,
}
"""Types whose layout with EFA differs, and why both work."""

ODD_CARDS = {
    "p6e-gb200.36xlarge": "the EC2 user guide (efa-acc-inst-types) recommends EFA on the odd cards, which the GPUs "
    "reach directly; ParallelCluster gives the even cards one as well, over the NIC of the odd card before each"
}
"""Rows of the catalog whose layout differs, and why both work."""

WITHOUT_EFA = (
    "ParallelCluster attaches an ENA interface to every card, each with an address of the subnet (32 for a p5 node); "
    "we attach the primary alone, one address per node, and warn that EFA is off"
)
"""Why every type of several cards differs without EFA, and no other does."""

MOTO_LACKS = {
    name: "moto 5.2.5 has no description: ParallelCluster is asked about one made from our row, so rule meets rule"
    for name in INSTANCE_TYPES
    if name.startswith(("p6e-gb200.", "p6e-gb300."))
}
"""Rows of the catalog with EFA that moto does not describe."""


def layout(instance: InstanceType) -> Layout:
    return [[one.card, one.device, one.type.value] for one in efa_interfaces(instance)]


def our_row(description: dict[str, Any]) -> InstanceType:
    """A row with the network cards that EC2 describes, so that our rule can be asked about any type."""
    network = description["NetworkInfo"]
    cards: list[NetworkCard] = []
    for card in sorted(network["NetworkCards"], key=lambda card: int(card["NetworkCardIndex"])):
        free = sum(one.efa for one in cards) < network["EfaInfo"]["MaximumEfaInterfaces"]
        takes_efa = "efa-only" in card["InterfaceTypes"] or "efa" in card["InterfaceTypes"]
        cards.append(NetworkCard(interfaces=card["MaximumNetworkInterfaces"], efa=takes_efa and free))
    return replace(INSTANCE_TYPES["p5.48xlarge"], name=description["InstanceType"], cards=tuple(cards))


def description_of(row: InstanceType) -> dict[str, Any]:
    """A description as EC2 would give it, made from our row."""
    cards = [
        {"NetworkCardIndex": i, "MaximumNetworkInterfaces": card.interfaces} for i, card in enumerate(row.known_cards)
    ]
    efa = {"MaximumEfaInterfaces": row.efa_interface_count}
    return {"InstanceType": row.name, "NetworkInfo": {"NetworkCards": cards, "EfaSupported": True, "EfaInfo": efa}}


@pytest.fixture(scope="module")
def rows() -> dict[str, InstanceType]:
    """Every row of the catalog with EFA whose network cards are known."""
    return {name: row for name, row in INSTANCE_TYPES.items() if row.cards is not None and row.efa_interface_count}


@pytest.fixture(scope="module")
def theirs(described: dict[str, Any], rows: dict[str, InstanceType]) -> dict[str, dict[str, Layout]]:
    ours = {name: description_of(row) for name, row in rows.items() if name not in described}
    return parallelcluster_layouts({**ours, **described})


def test_every_row_of_the_catalog_has_the_layout_that_parallelcluster_gives_it(
    rows: dict[str, InstanceType], theirs: dict[str, Any]
) -> None:
    assert len(rows) >= 12
    differing = {name for name, row in rows.items() if layout(row) != theirs[name]["efa"]}
    assert differing == set(ODD_CARDS)


def test_of_p6e_gb200_parallelcluster_gives_efa_to_the_even_cards_as_well(
    rows: dict[str, InstanceType], theirs: dict[str, Any]
) -> None:
    for name in ODD_CARDS:
        even = [[card, 1, "efa-only"] for card in range(2, 17, 2)]
        assert layout(rows[name]) == [one for one in theirs[name]["efa"] if one not in even]
        assert len(theirs[name]["efa"]) == len(layout(rows[name])) + len(even)


def test_every_type_with_efa_that_moto_describes_would_have_it_but_for_those_listed(
    described: dict[str, Any], theirs: dict[str, Any]
) -> None:
    differing = {name for name in described if layout(our_row(described[name])) != theirs[name]["efa"]}

    assert len(described) > 300
    assert differing == set(DIFFERENCES)


def test_the_listed_types_have_as_many_interfaces_with_efa_as_parallelcluster_gives_them(
    described: dict[str, Any], theirs: dict[str, Any]
) -> None:
    for name in DIFFERENCES:
        assert layout(our_row(described[name])) == [[0, 0, "interface"], [0, 1, "efa-only"]]
        assert theirs[name]["efa"] == [[0, 0, "interface"], [1, 1, "efa-only"]]


def test_without_efa_a_type_of_several_cards_differs_as_listed_and_no_other(
    described: dict[str, Any], theirs: dict[str, Any]
) -> None:
    differing = {
        name: WITHOUT_EFA for name in described if layout(our_row(described[name]))[:1] != theirs[name]["plain"]
    }

    of_several_cards = {name for name, one in described.items() if len(one["NetworkInfo"]["NetworkCards"]) > 1}
    assert set(differing) == of_several_cards


def test_rows_that_moto_does_not_describe_are_listed(rows: dict[str, InstanceType], described: dict[str, Any]) -> None:
    assert set(rows) - set(described) == set(MOTO_LACKS)


def test_a_wrong_layout_would_show(described: dict[str, Any], theirs: dict[str, Any]) -> None:
    p5 = our_row(described["p5.48xlarge"])
    first, *others = p5.known_cards
    wrong = replace(p5, cards=(replace(first, efa=False), *others))

    assert layout(p5) == theirs["p5.48xlarge"]["efa"]
    assert layout(wrong) != theirs["p5.48xlarge"]["efa"]
