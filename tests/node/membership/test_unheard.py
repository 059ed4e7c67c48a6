"""A node that runs and is never heard is given back, but not for ever."""

from __future__ import annotations

from trainfabric_node.membership.unheard import MOST, Unheard


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
