from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.lustre import lustre_size


def test_defaults_are_those_of_a_private_network_and_the_smallest_file_system(environment_data: Any) -> None:
    environment = validate_environment(environment_data(), "demo.yaml")

    assert environment.network.vpc_id is None
    assert not environment.network.assign_public_ips
    size = lustre_size(environment.storage.lustre.wish)
    assert (size.deployment_type, size.capacity_gib, size.throughput_mbps_per_tib) == ("PERSISTENT_2", 1200, 125)
    assert environment.storage.retain
    assert environment.fleet.efa
    assert environment.fleet.workers == "spot"
    assert environment.orchestrator == "fleet"
    assert environment.fleet.spares == 0


def test_by_default_a_job_waits_a_while_for_a_replacement_and_survives_a_stall(environment_data: Any) -> None:
    policy = validate_environment(environment_data(), "demo.yaml").fault_tolerance

    assert (policy.start_deadline_s, policy.wait_for_replacement_s) == (1800, 300)
    assert (policy.minimum_nodes, policy.heartbeats) == (None, "production")


def test_an_environment_cannot_be_changed_after_it_was_read(environment_data: Any) -> None:
    environment = validate_environment(environment_data(), "demo.yaml")

    with pytest.raises(ValidationError, match="Instance is frozen"):
        environment.name = "other"  # type: ignore[misc]
