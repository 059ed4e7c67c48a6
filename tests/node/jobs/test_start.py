from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.node.jobs.lab import (
    ALL,
    NOTHING,
    Embedded,
    checkpoints_of,
    start,
    wanted,
    write_parameter,
)
from tests.node.samples import RECIPE, plan, spec
from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.jobs import Fleet, JobControl, JobLedger, JobState, connect
from trainfabric_node.jobs.records import now
from trainfabric_plan.errors import InvalidInput, NotFound, Refused, Unreachable
from trainfabric_plan.policy import FaultTolerance


def claim_checkpoints(job: str) -> None:
    CheckpointStore(checkpoints_of(job)).claim("a")


def test_starting_a_job_writes_it_down_and_asks_for_its_nodes(lab: JobControl, ledger: JobLedger) -> None:
    started = start(lab)

    assert started.run == 1
    assert ledger.current() == started
    assert wanted() == ALL


def test_a_plan_for_fewer_nodes_asks_for_fewer(lab: JobControl) -> None:
    start(lab, plan=plan(2))

    assert wanted() == {"lab-coordinator": 1, "lab-workers": 1}


def test_a_second_job_is_refused_and_the_first_goes_on(lab: JobControl, ledger: JobLedger) -> None:
    first = start(lab)

    with pytest.raises(Refused, match=r"^environment lab: jobs must run one at a time, got second while first \(run 1"):
        start(lab, "second")

    assert ledger.current() == first
    assert wanted() == ALL


def test_spares_are_asked_for_beside_the_nodes_and_stand_in_the_records(aws: str, embedded: Embedded) -> None:
    write_parameter(embedded.deployed(spares=2).model_dump_json())
    policy = FaultTolerance(wait_for_replacement_s=7, minimum_nodes=2)

    started = start(connect("lab", "us-east-1"), spares=2, policy=policy)

    assert (started.spares, started.policy) == (2, policy)
    assert wanted() == {"lab-coordinator": 1, "lab-workers": 5}


def test_a_group_that_is_gone_is_noticed_before_anything_starts(
    lab: JobControl, ledger: JobLedger, embedded: Embedded
) -> None:
    write_parameter(embedded.deployed(workers="lab-gone").model_dump_json())

    with pytest.raises(NotFound) as caught:
        start(connect("lab", "us-east-1"))

    assert str(caught.value) == (
        "environment lab: Auto Scaling group must be an existing one, got lab-gone; deploy the environment again"
    )
    assert (ledger.current(), ledger.jobs()) == (None, [])


def test_the_environment_is_free_again_when_its_nodes_cannot_be_asked_for(
    lab: JobControl, ledger: JobLedger, embedded: Embedded
) -> None:
    write_parameter(embedded.deployed(nodes=20).model_dump_json())

    with pytest.raises(Unreachable) as caught:
        start(connect("lab", "us-east-1"), plan=plan(10))

    assert str(caught.value) == (
        "environment lab: autoscaling must accept the request, got An error occurred (ValidationError) when calling "
        "the SetDesiredCapacity operation: New SetDesiredCapacity value 9 is above max value 8; "
        "check the credentials and their permissions"
    )
    assert ledger.current() is None
    assert wanted() == NOTHING
    assert lab.status().state is JobState.FAILED
    assert lab.status().summary == f"failed: no nodes: {caught.value}"


def test_a_job_with_checkpoints_is_not_started_anew(lab: JobControl, ledger: JobLedger) -> None:
    claim_checkpoints("first")

    with pytest.raises(Refused) as caught:
        start(lab)

    assert str(caught.value) == (
        "environment lab: job must be a new one, got first, which has checkpoints; resume it, or choose another name"
    )
    assert ledger.current() is None


def test_a_corpus_that_is_not_there_is_noticed_before_anything_starts(lab: JobControl) -> None:
    with pytest.raises(NotFound) as caught:
        lab.start("first", RECIPE, plan(4), "s3://data/data/none")

    assert str(caught.value) == (
        "environment lab: corpus must be a prepared one, got none at s3://data/data/none; "
        "write it with python -m trainfabric_training.data prepare --output s3://data/data/none"
    )
    assert wanted() == NOTHING


@pytest.mark.parametrize(
    ("job", "given", "says"),
    [
        (
            "My_Job",
            {},
            "environment lab: job must be 1 to 63 lower-case letters, digits and hyphens, the first no hyphen, "
            "got My_Job",
        ),
        (
            "first",
            {"plan": plan(4, environment="other")},
            "environment lab: plan must be for environment lab and recipe tiny_cpu, got one for other and tiny_cpu; "
            "plan from the same environment file",
        ),
        (
            "first",
            {"plan": plan(8)},
            "environment lab: nodes of the plan must be at most the 4 that are deployed, got 8; "
            "deploy the environment again",
        ),
        (
            "first",
            {"spares": 1},
            "environment lab: spares must be at most the 0 that are deployed beside 4 nodes, got 1; "
            "deploy the environment again",
        ),
        (
            "first",
            {"policy": FaultTolerance(minimum_nodes=5)},
            "environment lab: minimum nodes must be at most the 4 of the plan, got 5; correct fault_tolerance",
        ),
    ],
)
def test_what_does_not_fit_the_environment_is_refused(
    lab: JobControl, job: str, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        start(lab, job, **given)

    assert str(caught.value) == says


def test_a_new_job_has_no_step_to_go_on_from(lab: JobControl, ledger: JobLedger) -> None:
    with pytest.raises(InvalidInput) as caught:
        start(lab, from_step=10)

    assert str(caught.value) == (
        "environment lab: from-step must be given with resume, got 10 without it; add --resume"
    )
    assert ledger.current() is None


def test_a_fleet_of_one_node_has_no_workers(aws: str, embedded: Embedded) -> None:
    write_parameter(embedded.deployed(1).model_dump_json())

    start(connect("lab", "us-east-1"), plan=plan(1))

    assert wanted()["lab-coordinator"] == 1


def _of_an_hour_ago(ledger: JobLedger) -> None:
    """A run that holds the environment."""
    ledger.claim(spec(4, run=1, created=now() - timedelta(hours=1)))


def test_a_run_whose_nodes_are_gone_without_a_word_does_not_hold_the_environment(
    lab: JobControl, ledger: JobLedger
) -> None:
    _of_an_hour_ago(ledger)
    before = lab.status()

    started = start(lab, "second")

    outcome = ledger.run("first", 1).outcome()
    assert (before.state, before.summary) == (JobState.FAILED, "failed: its nodes are gone")
    assert outcome is not None
    assert (outcome.state, outcome.detail) == ("failed", "its nodes are gone")
    assert ledger.current() == started


def test_a_run_with_a_node_or_a_request_for_one_holds_the_environment(
    lab: JobControl, ledger: JobLedger, fleet: Fleet
) -> None:
    _of_an_hour_ago(ledger)
    fleet.scale_up(1)

    with pytest.raises(Refused):
        start(lab, "second")

    assert ledger.run("first", 1).outcome() is None


def test_a_run_that_has_just_been_claimed_holds_the_environment_before_it_has_asked_for_nodes(
    lab: JobControl, ledger: JobLedger
) -> None:
    ledger.claim(spec(4))

    with pytest.raises(Refused):
        start(lab, "second")
