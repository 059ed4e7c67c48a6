"""Whatever dies, the job goes on from its last commit, by itself, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import NODES
from tests.faults.lab import AGENT, CONTROLLER, JOB, LAUNCHER, RENDEZVOUS, Lab, LocalNode, kill
from trainfabric_plan.contract import checkpoint_prefix

FAST_S = 20.0
"""Generous: how fast it is, is measured by benchmarks/recovery.py."""


def _log(lab: Lab) -> list[dict[str, Any]]:
    """Entries of the checkpoint log, in order."""
    s3, bucket, prefix = lab.session.aws.client("s3"), lab.session.deployed.checkpoint_bucket, checkpoint_prefix(JOB)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}log/")
    keys = sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))
    return [json.loads(lab.object(key) or "") for key in keys]


def _commits_follow_their_claim(lab: Lab) -> bool:
    """Whether no epoch has committed once another had claimed the job."""
    owner = None
    for entry in _log(lab):
        if entry["event"] == "claim":
            owner = entry["nonce"]
        elif entry["nonce"] != owner:
            return False
    return True


def test_a_killed_rank_ends_the_epoch_and_the_next_one_goes_on_with_all_nodes(running: Lab) -> None:
    before = running.epoch()["number"]

    running.seconds_to_new_step(lambda: kill(running.victim().ranks(before)[0].pid), FAST_S)

    record = running.epoch()
    assert record["number"] == before + 1
    assert len(record["nodes"]) == NODES


@pytest.mark.parametrize("service", [AGENT, LAUNCHER])
def test_a_killed_service_of_a_node_takes_its_ranks_along_and_comes_back(running: Lab, service: str) -> None:
    before, node = running.epoch()["number"], running.victim()
    ranks = [rank.pid for rank in node.ranks(before)]
    killed = node.service(service)

    running.seconds_to_new_step(lambda: kill(killed), FAST_S)

    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)
    running.wait_for("the service", lambda: node.service(service) not in (None, killed))


def test_a_killed_elastic_agent_takes_its_ranks_along(running: Lab) -> None:
    before, node = running.epoch()["number"], running.victim()
    ranks = [rank.pid for rank in node.ranks(before)]

    running.seconds_to_new_step(lambda: kill(node.elastic_agent()), FAST_S)

    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)


def test_a_killed_controller_comes_back_and_nobody_starts_anew(running: Lab) -> None:
    before, coordinator = running.epoch()["number"], running.coordinator()
    killed = coordinator.service(CONTROLLER)

    kill(killed)

    running.wait_for("a new controller", lambda: coordinator.service(CONTROLLER) not in (None, killed))
    running.wait_for("two of them in the story", lambda: len(running.events("controller")) >= 2)
    running.wait_for_step_beyond(running.highest_step())
    assert running.epoch()["number"] == before


def test_without_its_rendezvous_store_an_epoch_goes_on_and_the_next_one_finds_a_new_store(running: Lab) -> None:
    before, coordinator = running.epoch()["number"], running.coordinator()
    killed = coordinator.service(RENDEZVOUS)

    kill(killed)

    running.wait_for("a new store", lambda: coordinator.service(RENDEZVOUS) not in (None, killed))
    running.wait_for_step_beyond(running.highest_step())
    assert running.epoch()["number"] == before
    running.seconds_to_new_step(lambda: kill(running.victim().ranks(before)[0].pid), FAST_S)


def test_a_stopped_rank_is_named_with_its_host_and_its_stack(running: Lab) -> None:
    epoch, node = running.epoch()["number"], running.victim()
    rank = node.ranks(epoch)[0]

    running.seconds_to_new_step(lambda: os.kill(rank.pid, signal.SIGSTOP), FAST_S)

    stalled = running.wait_for("the stall", lambda: [e for e in running.events("rank_stalled") if e["epoch"] == epoch])
    assert (stalled[0]["rank"], stalled[0]["node"]) == (rank.rank, node.instance_id)
    assert "train" in stalled[0]["stack"]
    assert any(f"rank {rank.rank}" in line and node.instance_id in line for line in running.status()["story"])


def test_training_goes_on_with_the_nodes_that_are_left_and_takes_the_replacement_in_at_a_checkpoint(
    running: Lab,
) -> None:
    lost = running.victim()

    running.seconds_to_new_step(lambda: lost.ask("power-off"), FAST_S)
    fewer = running.epoch()
    running.wait_until_whole(NODES)

    assert len(fewer["nodes"]) == 2
    assert fewer["plan"]["layout"] == {"data": 1, "pipeline": 2, "tensor": 1}
    assert fewer["plan"]["global_batch"] == running.epoch()["plan"]["global_batch"]
    assert lost.instance_id not in {node["instance_id"] for node in running.epoch()["nodes"]}
    last = max(line["step"] for line in running.steps() if line["epoch"] == fewer["number"])
    first = min(line["step"] for line in running.steps() if line["epoch"] > fewer["number"])
    assert first == last + 1


def test_a_node_that_is_silent_is_lost_and_its_return_changes_nothing(running: Lab) -> None:
    before, silent = running.epoch()["number"], running.victim()
    frozen = _freeze(silent)

    running.wait_for("an epoch without it", lambda: running.epoch()["number"] > before)
    running.wait_for_step_beyond(running.highest_step())
    _thaw(frozen)

    running.wait_for("its ranks gone", lambda: not any(_alive(rank.pid) for rank in silent.ranks(before)))
    running.wait_until_whole(NODES)
    assert _commits_follow_their_claim(running)


def test_a_coordinator_that_is_lost_comes_back_and_goes_on(running: Lab) -> None:
    before, coordinator = running.epoch()["number"], running.coordinator()

    coordinator.ask("power-off")

    running.wait_for("another coordinator", lambda: _another(running, coordinator))
    back = time.time()
    running.wait_for("an epoch with it", lambda: running.epoch()["number"] > before)
    running.wait_for_step_beyond(running.highest_step())
    assert time.time() - back < 30
    assert _commits_follow_their_claim(running)


def test_every_step_of_the_story_is_there_once_when_it_is_told(running: Lab) -> None:
    status = running.status()

    assert status["state"] == "running"
    steps = sorted({line["step"] for line in running.steps()})
    assert steps == list(range(1, steps[-1] + 1))
    assert [event["time"] for event in status["events"]] == sorted(event["time"] for event in status["events"])


def test_a_stop_ends_it_with_a_checkpoint_and_no_node_is_left(running: Lab) -> None:
    status = running.stop()

    assert status["state"] == "stopped"
    assert status["checkpoint_step"] == status["step"]
    running.wait_for("no instance", lambda: not running.nodes())
    running.wait_for("no process", lambda: not running.orphans())
    assert running.ended()


def _another(lab: Lab, coordinator: LocalNode) -> bool:
    group = lab.session.deployed.coordinator.name
    found = lab.session.aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    instances = found["AutoScalingGroups"][0]["Instances"]
    return bool(instances) and instances[0]["InstanceId"] != coordinator.instance_id


def _freeze(node: LocalNode) -> list[int]:
    pids = list(node.processes())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


def _thaw(pids: list[int]) -> None:
    for pid in pids:
        if _alive(pid):
            os.kill(pid, signal.SIGCONT)


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
