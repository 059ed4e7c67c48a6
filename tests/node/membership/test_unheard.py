"""A node that runs and is never heard is given back, but not for ever."""

from __future__ import annotations

from trainfabric_node.membership.unheard import MISSING_S, MOST, Missing, Unheard


def test_a_node_that_is_not_heard_in_time_is_named_once() -> None:
    unheard = Unheard(100)

    assert unheard.overdue(["i-1", "i-2"], ["i-1"], now=0) == []
    assert unheard.overdue(["i-1", "i-2"], ["i-1"], now=100) == []
    assert unheard.overdue(["i-1", "i-2"], ["i-1"], now=101) == ["i-2"]
    assert unheard.overdue(["i-1", "i-2"], ["i-1"], now=300) == []


def test_a_node_that_was_heard_in_between_is_not() -> None:
    unheard = Unheard(100)
    unheard.overdue(["i-1"], [], now=0)
    unheard.overdue(["i-1"], ["i-1"], now=50)

    assert unheard.overdue(["i-1"], ["i-1"], now=500) == []


def test_an_image_that_never_boots_is_not_launched_for_ever() -> None:
    unheard = Unheard(100)
    names = [f"i-{number}" for number in range(MOST + 3)]
    unheard.overdue(names, [], now=0)

    assert unheard.overdue(names, [], now=200) == names[:MOST]
    assert unheard.overdue(names, [], now=900) == []


def test_missing_nodes_are_asked_for_when_they_stay_missing() -> None:
    missing = Missing(4)

    assert not missing.is_due(3, now=0)
    assert not missing.is_due(3, now=MISSING_S - 1)
    assert missing.is_due(3, now=MISSING_S)


def test_a_node_that_a_group_launches_anew_by_itself_is_not_asked_for() -> None:
    missing = Missing(4)
    missing.is_due(3, now=0)
    missing.is_due(4, now=MISSING_S / 2)

    assert not missing.is_due(3, now=MISSING_S + 1)


def test_nodes_that_stay_missing_are_asked_for_ever_more_rarely_and_not_for_ever() -> None:
    missing = Missing(4)

    asked = [now for now in range(0, 7 * 24 * 3600, 30) if missing.is_due(3, now)]

    assert asked == [60, 360, 1860]
    assert len(asked) == MOST
