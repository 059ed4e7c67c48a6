"""What whoever deploys an environment must be allowed to do: the least, from the types of its resources.

`deploy_policies` is for the role that CloudFormation uses, `caller_policy` for the person or pipeline that calls CDK.
"""

from trainfabric_plan.permissions.handlers import Handler
from trainfabric_plan.permissions.policy import (
    BOOTSTRAP_QUALIFIER,
    HANDLERS,
    MANAGED_POLICY_CHARACTERS,
    Statement,
    actions_of,
    caller_policy,
    deploy_policies,
    deploy_statements,
)
from trainfabric_plan.permissions.resource_types import resource_types
from trainfabric_plan.permissions.scopes import Target, linked_buckets, service_linked_roles

__all__ = [
    "BOOTSTRAP_QUALIFIER",
    "HANDLERS",
    "MANAGED_POLICY_CHARACTERS",
    "Handler",
    "Statement",
    "Target",
    "actions_of",
    "caller_policy",
    "deploy_policies",
    "deploy_statements",
    "linked_buckets",
    "resource_types",
    "service_linked_roles",
]
