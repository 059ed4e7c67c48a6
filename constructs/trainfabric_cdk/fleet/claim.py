"""One fleet for each environment: its groups, parameters and metrics are named after it."""

from __future__ import annotations

from typing import cast

from aws_cdk import Stack, Stage
from constructs import Construct

from trainfabric_cdk.errors import is_known, property_error


class _Claim(Construct):
    """Holds an environment's name for a fleet, in a stage, an account and a region; it makes no resource."""

    def __init__(self, scope: Construct, id: str, *, holder: str) -> None:
        super().__init__(scope, id)
        self.holder = holder


def claim_environment(fleet: Construct, environment: str) -> None:
    """Claim the name of an environment for a fleet; one that is known only at deploy time is not looked at.

    Stacks without an account or a region are deployed to those of whoever deploys the app, so that all of them are
    taken for one; they are not compared with stacks that name theirs.

    Raises:
        PropertyError: If another fleet of the same stage, account and region has it.
    """
    stage, stack = Stage.of(fleet), Stack.of(fleet)
    if stage is None or not is_known(environment):
        return
    account = stack.account if is_known(stack.account) else "own"
    region = stack.region if is_known(stack.region) else "own"
    id = f"TrainfabricEnvironment-{account}-{region}-{environment}"
    claimed = cast(_Claim | None, stage.node.try_find_child(id))
    if claimed is None:
        _Claim(cast(Construct, stage), id, holder=fleet.node.path)
        return
    rule = "of one fleet in a region"
    remedy = "name it otherwise: Auto Scaling groups, parameters and metrics would share their names"
    raise property_error(fleet, "environment", rule, f"{environment}, which {claimed.holder} has", remedy)
