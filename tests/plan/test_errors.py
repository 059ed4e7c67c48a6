from __future__ import annotations

import pytest

from trainfabric_plan.errors import (
    InvalidInput,
    Mistake,
    NotFound,
    Refused,
    TrainfabricError,
    Unreachable,
    mistake,
)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Mistake(where="a.yaml", name="x", rule="at least 1"), "a.yaml: x must be at least 1"),
        (Mistake(where="a.yaml", name="x", rule="at least 1", got="0"), "a.yaml: x must be at least 1, got 0"),
        (
            Mistake(where="a.yaml", name="x", rule="at least 1", got="0", remedy="use 1"),
            "a.yaml: x must be at least 1, got 0; use 1",
        ),
        (Mistake(where="a.yaml", name="x", rule="must not change"), "a.yaml: x must not change"),
    ],
)
def test_a_mistake_reads_as_one_sentence(one: Mistake, text: str) -> None:
    assert str(one) == text


def test_several_mistakes_are_one_error_with_a_line_each() -> None:
    error = InvalidInput([Mistake(where="a", name="x", rule="1"), Mistake(where="a", name="y", rule="2")])

    assert str(error) == "a: x must be 1\na: y must be 2"
    assert [one.name for one in error.mistakes] == ["x", "y"]


def test_a_single_mistake_shows_any_value_as_text() -> None:
    assert str(mistake("a", "x", "at least 1", 0, "use 1")) == "a: x must be at least 1, got 0; use 1"


@pytest.mark.parametrize("kind", [InvalidInput, NotFound, Refused, Unreachable])
def test_whatever_a_user_can_mend_is_one_family(kind: type[Exception]) -> None:
    assert issubclass(kind, TrainfabricError)


def test_python_callers_may_catch_the_builtin_kinds() -> None:
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(NotFound, LookupError)
