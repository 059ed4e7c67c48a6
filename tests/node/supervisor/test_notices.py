from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.node.imds import Imds, running_imds
from trainfabric_node.agent.notices import NoticeWatch, notices_of
from trainfabric_node.membership.protocol import Notice, most_urgent
from trainfabric_node.metadata import InstanceMetadata
from trainfabric_plan.errors import Unreachable

SPOT = Notice(kind="spot", detail="terminate at 2026-12-01T08:22:00Z")
REBALANCE = Notice(kind="rebalance", detail="recommended at 2026-12-01T08:20:00Z")
LEAVE = Notice(kind="leave", detail="the supervisor was told to leave")


@pytest.fixture
def imds() -> Iterator[Imds]:
    with running_imds() as service:
        yield service


def test_of_several_notices_the_one_that_leaves_least_time_is_told() -> None:
    assert most_urgent(None, REBALANCE, LEAVE) == LEAVE
    assert most_urgent(LEAVE, SPOT, REBALANCE) == SPOT
    assert most_urgent(None) is None


def test_notices_are_those_of_the_metadata_service(imds: Imds) -> None:
    metadata = InstanceMetadata(imds.endpoint)
    before = notices_of(metadata)
    imds.values["events/recommendations/rebalance"] = '{"noticeTime": "2026-12-01T08:20:00Z"}'
    imds.values["spot/instance-action"] = '{"action": "terminate", "time": "2026-12-01T08:22:00Z"}'

    assert before == []
    assert notices_of(metadata) == [SPOT, REBALANCE]


def test_a_notice_is_kept_and_told_once_even_if_the_service_falls_silent() -> None:
    answers: list[list[Notice] | None] = [[], [REBALANCE], None, [REBALANCE], [SPOT, REBALANCE], []]
    rings: list[Notice | None] = []

    def ask() -> list[Notice]:
        answer = answers.pop(0)
        if answer is None:
            raise Unreachable("instance metadata must answer")
        return answer

    watch = NoticeWatch(ask, 5.0, lambda: rings.append(watch.notice))
    seen = []
    while answers:
        watch.look()
        seen.append(watch.notice)

    assert seen == [None, REBALANCE, REBALANCE, REBALANCE, SPOT, SPOT]
    assert rings == [REBALANCE, SPOT]
