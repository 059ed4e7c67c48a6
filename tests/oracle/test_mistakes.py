"""Mistakes in ParallelCluster's configuration: ours refuses each; its own schema and validators are asked as well.

The validators run on moto. The page docs/parallelcluster-rules.md is what they answered in such a run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.conftest import asked
from tests.oracle.page import Said, answers, page
from tests.plan.parallelcluster.mistakes import MISTAKES, MORE, RIGHT, Configuration, Mistake, settled
from trainfabric_plan.parallelcluster import check

PAGE = Path(__file__).parents[2] / "docs/parallelcluster-rules.md"


def given(configuration: Configuration) -> Configuration:
    made: Configuration = json.loads(settled(configuration))
    return made


@pytest.fixture(scope="module")
def said() -> Said:
    """What ParallelCluster says of the right configuration and of every mistake."""
    return answers()


def test_nobody_has_anything_to_say_about_the_right_configuration(said: Said) -> None:
    assert [one for one in said[""] if one[0] != "INFO"] == []
    assert list(check(given(RIGHT))) == []


def test_mistakes_are_told_apart() -> None:
    assert len({one.what for one in (*MISTAKES, *MORE)}) == len(MISTAKES) + len(MORE)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.what)
def test_each_mistake_breaks_a_rule_of_ours(mistake: Mistake) -> None:
    assert mistake.rule in {one.rule for one in check(given(mistake.configuration))}


def test_what_parallelcluster_refuses_ours_refuse(said: Said) -> None:
    refused = {one.what for one in MISTAKES if any(level == "ERROR" for level, _, _ in said[one.what])}
    ours = {one.what for one in MISTAKES if any(found.severity == "error" for found in check(given(one.configuration)))}

    assert len(refused) > 35
    assert refused - ours == set()


@pytest.mark.parametrize("words", [("True", "False"), ("true", "false")])
def test_numbers_and_truths_may_be_text_as_cloudformation_sends_them(words: tuple[str, str]) -> None:
    made = _as_text(given(RIGHT), words)

    assert list(check(made)) == []
    assert asked("schema.py", [made], "load") == [None]


def _as_text(value: Any, words: tuple[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _as_text(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_text(one, words) for one in value]
    if isinstance(value, bool):
        return words[0] if value else words[1]
    return str(value) if isinstance(value, int) else value


def test_the_committed_page_is_what_a_run_gives(said: Said) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(said)
