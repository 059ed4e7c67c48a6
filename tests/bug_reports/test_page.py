from __future__ import annotations

from pathlib import Path

from tests.bug_reports.page import page_of_a_run

PAGE = Path(__file__).parents[2] / "docs/bug-reports.md"


def test_the_committed_page_is_what_a_run_of_the_reports_gives() -> None:
    assert PAGE.read_text() == page_of_a_run()
