from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from tests.node.commits import commit
from tests.node.jobs.lab import NOTHING, checkpoints_of, start, wanted
from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.jobs import JobControl, JobLedger
from trainfabric_node.store import Store
from trainfabric_plan.errors import InvalidInput, NotFound, Refused


def test_a_job_without_a_commit_is_not_resumed(lab: JobControl) -> None:
    CheckpointStore(checkpoints_of("first")).claim("a")

    with pytest.raises(NotFound) as caught:
        start(lab, resume=True)

    assert str(caught.value) == (
        "environment lab: job to resume must have a committed checkpoint, got none of first; "
        "start it without resume, or under another name if it failed before its first checkpoint"
    )


def test_a_job_goes_on_from_its_newest_checkpoint_as_the_next_run(lab: JobControl, ledger: JobLedger) -> None:
    start(lab)
    lab.stop(force=True)
    commit(checkpoints_of("first"), step=10)

    resumed = start(lab, resume=True)

    assert (resumed.run, resumed.resume, resumed.from_step) == (2, True, None)
    assert resumed.resume_options == ["--resume"]
    assert ledger.current() == resumed


def test_a_job_goes_on_from_an_older_checkpoint_while_the_newest_is_damaged(lab: JobControl, ledger: JobLedger) -> None:
    checkpoints = checkpoints_of("first")
    commit(checkpoints, step=10)
    commit(checkpoints, step=20)
    checkpoints.delete("steps/00000020-run-1/rank00000-0000.bin")

    resumed = start(lab, resume=True, from_step=10)

    assert resumed.resume_options == ["--resume", "--from-step", "10"]
    assert ledger.current() == resumed


def _delete_part(checkpoints: Store) -> None:
    checkpoints.delete("steps/00000010-run-1/rank00000-0000.bin")


def _truncate_part(checkpoints: Store) -> None:
    checkpoints.put("steps/00000010-run-1/rank00000-0000.bin", bytes(20))


def _delete_manifest(checkpoints: Store) -> None:
    checkpoints.delete("steps/00000010-run-1/manifest.json")


@pytest.mark.parametrize(
    ("damage", "error", "says"),
    [
        (_delete_part, NotFound, "rank00000-0000.bin must exist, got none"),
        (_truncate_part, InvalidInput, "rank00000-0000.bin must be an object of 24 bytes, got 20"),
        (_delete_manifest, NotFound, "manifest.json must exist, got none"),
    ],
)
@pytest.mark.parametrize("from_step", [None, 10])
def test_a_damaged_checkpoint_is_refused_before_anything_starts(
    lab: JobControl,
    ledger: JobLedger,
    damage: Callable[[Store], None],
    error: type[Exception],
    says: str,
    from_step: int | None,
) -> None:
    checkpoints = checkpoints_of("first")
    commit(checkpoints, step=10)
    damage(checkpoints)

    with pytest.raises(error) as caught:
        start(lab, resume=True, from_step=from_step)

    assert str(caught.value) == (
        f"s3://checkpoints/jobs/first/checkpoints/: steps/00000010-run-1/{says}; "
        "restore the object, or resume an older commit with --from-step"
    )
    assert ledger.current() is None
    assert ledger.jobs() == []
    assert wanted() == NOTHING


def test_an_overwritten_manifest_is_refused_before_anything_starts(lab: JobControl, ledger: JobLedger) -> None:
    committed = commit(checkpoints_of("first"), step=10).at_step(10)
    checkpoints_of("first").put(committed.manifest_key, b"{}")

    with pytest.raises(InvalidInput) as caught:
        start(lab, resume=True)

    assert str(caught.value) == (
        "s3://checkpoints/jobs/first/checkpoints/: steps/00000010-run-1/manifest.json must be an object with SHA-256 "
        f"{committed.manifest_sha256}, got {hashlib.sha256(b'{}').hexdigest()}; "
        "restore the object, or resume an older commit with --from-step"
    )
    assert ledger.current() is None
    assert wanted() == NOTHING


def test_a_step_that_is_not_committed_is_refused_with_those_that_are(lab: JobControl, ledger: JobLedger) -> None:
    commit(checkpoints_of("first"), step=10)
    commit(checkpoints_of("first"), step=20)

    with pytest.raises(NotFound) as caught:
        start(lab, resume=True, from_step=15)

    assert str(caught.value) == (
        "s3://checkpoints/jobs/first/checkpoints/: step must be a committed one, got 15; committed steps: 10, 20"
    )
    assert ledger.current() is None


@pytest.mark.parametrize("job", ["first", "second"])
def test_a_resumed_job_hears_of_the_one_that_runs_before_its_checkpoints_are_looked_for(
    lab: JobControl, ledger: JobLedger, job: str
) -> None:
    first = start(lab)

    with pytest.raises(Refused) as caught:
        start(lab, job, resume=True)

    assert str(caught.value) == (
        f"environment lab: jobs must run one at a time, got {job} while first (run 1, since "
        f"{first.created:%Y-%m-%d %H:%M} UTC) is running; wait for it, or end it with trainfabric job stop"
    )
    assert ledger.current() == first
