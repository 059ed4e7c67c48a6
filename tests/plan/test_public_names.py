"""The names that the rest of the house and its users rely on: a change here is a change for them."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from trainfabric_plan import contract


def public(module: ModuleType) -> set[str]:
    """Names of `__all__`, or those that the module defines itself."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", module.__name__) == module.__name__
    }


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "catalog",
            "INSTANCE_TYPES Accelerator InstanceName InstanceType Interface InterfaceMode InterfaceType Links "
            "NetworkCard Price UnknownFact addresses_per_node efa_interfaces find_instance_type fsx_lustre_price "
            "instance_type nat_gateway_price no_bandwidth offers_bandwidth on_demand_price parse_instance_type "
            "spot_saving",
        ),
        (
            "deployed",
            "DeployedEnvironment MOST_GROUPS MOST_GROUPS_OF_A_SMALL_PARAMETER NodeGroup group_sizes parse_deployed "
            "trains",
        ),
        ("environment", "Bucket Environment FaultTolerance Fleet Lustre Network Storage Training validate_environment"),
        ("environment.file", "read_environment"),
        (
            "errors",
            "EXIT_USER_ERROR InvalidInput Mistake NotFound Refused TrainfabricError Unreachable mistake unreadable",
        ),
        ("layout", "Layout LayoutProblem accumulation layout_problems"),
        (
            "lint",
            "Assembly Finding RULES Rule SUBJECTS Severity Template chosen_rules is_cluster lint read_cloud_assembly "
            "template_of_cluster",
        ),
        ("model", "Strict"),
        ("policy", "FaultTolerance"),
        (
            "own_command",
            "CodePin EcrRepository IMAGE_OF_ENDPOINTS IMAGE_RULE OwnCommand ecr_repository is_pinned_image "
            "is_reached_by_endpoints",
        ),
        (
            "planning",
            "AnyPlan CommandPlan CostPerHour MemoryPerRank Plan cost_per_hour make_command_plan make_plan "
            "memory_per_rank plan_for shrunk_command shrunk_plan",
        ),
        ("recipes", "RECIPES ModelShape Recipe recipe"),
    ],
)
def test_the_public_names_of_a_module_are_these(module: str, names: str) -> None:
    assert public(importlib.import_module(f"trainfabric_plan.{module}")) - {"annotations"} == set(names.split())


def test_names_that_deployed_environments_carry_never_change() -> None:
    assert contract.environment_parameter("demo") == "/trainfabric/demo/environment"
    assert contract.plan_parameter("demo") == "/trainfabric/demo/plan"
    assert contract.CURRENT_JOB_KEY == "jobs/current.json"
    assert contract.job_prefix("gpt") == "jobs/gpt/"
    assert contract.checkpoint_prefix("gpt") == "jobs/gpt/checkpoints/"
    assert contract.run_prefix("gpt", 3) == "jobs/gpt/runs/0003/"
    assert contract.DATA_PREFIX == "data/"
    assert (contract.Tag.ENVIRONMENT, contract.Tag.ROLE) == ("trainfabric:environment", "trainfabric:role")
    assert [str(role) for role in contract.Role] == ["coordinator", "worker"]
    assert contract.epoch_key("gpt", 7) == "jobs/gpt/epochs/00000007.json"
    assert contract.code_key("0f8e.zip") == "code/0f8e.zip"
    assert (contract.RENDEZVOUS_PORT, contract.CONTROL_PORT) == (29400, 29401)
    assert contract.METRIC_NAMESPACE == "Trainfabric"


def test_variables_of_a_node_are_prefixed_and_distinct() -> None:
    values = [value for name, value in vars(contract.NodeVariable).items() if name.isupper()]

    assert all(value.startswith("TRAINFABRIC_") for value in values)
    assert len(set(values)) == len(values)
