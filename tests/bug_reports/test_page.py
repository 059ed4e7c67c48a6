from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.bug_reports.page import page_of_a_run, rows
from tests.bug_reports.reports import ALL, NOT_HERE

PAGE = Path(__file__).parents[2] / "docs/bug-reports.md"


def test_the_committed_page_is_what_a_run_of_the_reports_gives() -> None:
    assert PAGE.read_text() == page_of_a_run()


def test_every_report_is_a_row_or_left_out_with_a_reason_and_in_one_place_alone() -> None:
    places = Counter([*rows(), *(link for _, links in NOT_HERE for link in links)])

    assert set(places) == ALL
    assert [link for link, times in places.items() if times > 1] == []
