from __future__ import annotations

import boto3
import pytest
from moto.autoscaling.models import AutoScalingBackend

from tests.node.jobs.lab import ALL, NOTHING, Embedded, start, wanted, write_parameter
from trainfabric_node.jobs import Fleet, JobControl, JobLedger, Member
from trainfabric_plan.contract import Role
from trainfabric_plan.errors import InvalidInput, NotFound, Unreachable


def workers(fleet: Fleet) -> list[Member]:
    return [member for member in fleet.members() if member.role is Role.WORKER]


def test_members_are_the_nodes_of_both_groups_coordinator_first(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(3)

    members = fleet.members()

    assert [member.role for member in members] == [Role.COORDINATOR, Role.WORKER, Role.WORKER]
    assert {member.life_cycle_state for member in members} == {"InService"}
    assert not any(member.protected or member.leaving for member in members)
    assert all(member.launch_template_version for member in members)
    assert wanted() == {"lab-coordinator": 1, "lab-workers": 2}


def test_protected_members_stay_when_a_group_shrinks(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    kept = {member.instance_id for member in workers(fleet)[1:]}

    fleet.protect([*kept, "i-gone"])
    boto3.client("autoscaling").set_desired_capacity(AutoScalingGroupName="lab-workers", DesiredCapacity=0)

    assert {member.instance_id for member in workers(fleet)} == kept
    assert all(member.protected for member in workers(fleet))


def test_a_member_is_replaced_by_its_id_even_if_it_is_protected(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    before = {member.instance_id for member in workers(fleet)}
    lost = min(before)
    fleet.protect(before)

    replaced = fleet.replace(lost)

    after = {member.instance_id for member in workers(fleet)}
    assert replaced
    assert before - after == {lost}
    assert len(after) == 3
    assert wanted() == ALL


def test_a_member_that_is_gone_already_is_not_replaced_twice(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    lost = workers(fleet)[0].instance_id
    boto3.client("ec2").terminate_instances(InstanceIds=[lost])
    before = fleet.members()

    assert not fleet.replace(lost)
    assert fleet.members() == before


def test_a_member_that_is_given_back_is_not_replaced(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    broken = workers(fleet)[0].instance_id
    fleet.protect([broken])

    given = (fleet.give_back(broken), fleet.give_back(broken))

    assert given == (True, False)
    assert broken not in {member.instance_id for member in fleet.members()}
    assert wanted() == {"lab-coordinator": 1, "lab-workers": 2}


def test_a_member_that_outlived_a_release_is_given_back_though_no_node_is_asked_for(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    kept = workers(fleet)[0].instance_id
    fleet.protect([kept])
    boto3.client("autoscaling").set_desired_capacity(AutoScalingGroupName="lab-workers", DesiredCapacity=0)

    assert fleet.give_back(kept)
    assert workers(fleet) == []


def test_who_releases_the_others_stays_until_it_gives_itself_back(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    fleet.protect(member.instance_id for member in fleet.members())
    last = workers(fleet)[1].instance_id

    fleet.release(but=last)
    left = [member.instance_id for member in fleet.members()]
    asked = wanted()
    fleet.give_back(last)

    assert (left, asked) == ([last], {"lab-coordinator": 0, "lab-workers": 1})
    assert (fleet.members(), wanted()) == ([], NOTHING)


def test_a_fleet_is_empty_when_no_node_is_there_and_none_is_asked_for(
    aws: str, fleet: Fleet, embedded: Embedded
) -> None:
    before = fleet.is_empty()
    fleet.scale_up(1)
    there = fleet.is_empty()
    fleet.release()

    assert (before, there, fleet.is_empty()) == (True, False, True)
    assert Fleet.of(embedded.deployed(workers="lab-gone")).is_empty()


def test_a_runs_nodes_are_released_whatever_another_version_has_deployed_meanwhile(
    lab: JobControl, ledger: JobLedger
) -> None:
    start(lab)
    write_parameter('{"of": "another version"}')
    spec = ledger.current()
    assert spec is not None

    Fleet.of_job(spec, "us-east-1").release()

    assert wanted() == NOTHING


def test_releasing_takes_protected_members_too(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    fleet.protect(member.instance_id for member in fleet.members())

    fleet.release()

    assert fleet.members() == []
    assert wanted() == NOTHING


def test_members_that_cannot_be_unprotected_are_released_by_their_ids(
    aws: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.scale_up(4)
    fleet.protect(member.instance_id for member in fleet.members())

    monkeypatch.setattr(AutoScalingBackend, "set_instance_protection", lambda *_, **__: None)
    fleet.release()

    assert fleet.members() == []


def test_workers_are_released_before_the_coordinator(aws: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.scale_up(2)
    order: list[str] = []
    resize = AutoScalingBackend.set_desired_capacity

    def record(backend: AutoScalingBackend, group_name: str, desired_capacity: int) -> None:
        order.append(group_name)
        resize(backend, group_name, desired_capacity)

    monkeypatch.setattr(AutoScalingBackend, "set_desired_capacity", record)
    fleet.release()

    assert order == ["lab-workers", "lab-coordinator"]


def test_a_group_that_is_gone_is_named_and_the_other_one_released(aws: str, fleet: Fleet, embedded: Embedded) -> None:
    fleet.scale_up(4)

    with pytest.raises(NotFound) as caught:
        Fleet.of(embedded.deployed(workers="lab-gone")).release()

    assert str(caught.value) == (
        "environment lab: Auto Scaling group must be an existing one, got lab-gone; deploy the environment again"
    )
    assert wanted() == {"lab-coordinator": 0, "lab-workers": 3}


@pytest.mark.parametrize(("nodes", "spares"), [(2, 0), (1, 1)])
def test_a_fleet_without_workers_has_one_node(aws: str, embedded: Embedded, nodes: int, spares: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        Fleet.of(embedded.deployed(1)).scale_up(nodes, spares)

    assert str(caught.value) == (
        "environment lab: nodes must be 1 for a fleet without workers, got 2; deploy the environment with more nodes"
    )


def test_after_a_refusal_no_node_is_asked_for_any_more(aws: str, fleet: Fleet) -> None:
    with pytest.raises(Unreachable):
        fleet.scale_up(20)

    assert wanted() == NOTHING


def test_a_fleet_that_has_become_smaller_gets_its_size_again(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    fleet.give_back(workers(fleet)[0].instance_id)
    assert wanted() == {**ALL, "lab-workers": 2}

    fleet.restore(4)

    assert wanted() == ALL
    assert len(workers(fleet)) == 3


def test_nodes_stay_when_more_are_refused_to_a_running_job(aws: str, fleet: Fleet) -> None:
    fleet.scale_up(4)
    with pytest.raises(Unreachable):
        fleet.restore(20)

    assert wanted() == ALL
