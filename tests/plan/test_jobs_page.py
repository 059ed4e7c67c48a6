from __future__ import annotations

from pathlib import Path

import pytest

from trainfabric_plan import contract
from trainfabric_plan.contract import Event, ExitStatus
from trainfabric_plan.errors import InvalidInput
from trainfabric_plan.job_reference import events_table, exit_statuses_table, with_reference

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"


def test_the_page_about_jobs_is_current() -> None:
    page = PAGE.read_text()

    assert with_reference(page) == page


@pytest.mark.parametrize("event", list(Event))
def test_every_event_is_explained(event: Event) -> None:
    rows = [line for line in events_table().splitlines() if line.startswith(f"| `{event.value}` | ")]

    assert len(rows) == 1
    assert rows[0].split(" | ")[1].strip("| ")


def test_every_exit_status_is_explained() -> None:
    rows = [line.strip("| ").split(" | ") for line in exit_statuses_table().splitlines()[2:]]
    statuses = {name: value for name, value in vars(ExitStatus).items() if not name.startswith("_")}

    assert {name.strip("`"): int(status) for status, name, _ in rows} == statuses
    assert all(meaning for _, _, meaning in rows)


@pytest.mark.parametrize(
    "key",
    [
        contract.CURRENT_JOB_KEY,
        contract.LAST_JOB_KEY,
        contract.checkpoint_prefix("JOB"),
        contract.epoch_key("JOB", 7),
        contract.code_key("ASSET"),
        *(
            contract.run_prefix("JOB", 1) + name
            for name in ("controller.json", "stop", "nodes/INSTANCE.json", contract.OUTCOME_FILE)
        ),
        *(
            f"{contract.run_prefix('JOB', 1)}epochs/00000007/{name}"
            for name in (contract.STEPS_FILE, contract.EVENTS_FILE, contract.RESULT_FILE)
        ),
    ],
)
def test_every_key_of_the_bucket_is_on_the_page(key: str) -> None:
    assert f"| `{key}` |" in PAGE.read_text()


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        with_reference("# Jobs\n")

    assert str(caught.value) == (
        "page: events must be between "
        "<!-- events: written by python -m trainfabric_plan.job_reference docs/jobs.md --> "
        "and <!-- end -->, got no such lines"
    )
