"""IAM policy documents for deploying an environment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trainfabric_plan.environment import Environment
from trainfabric_plan.permissions.compute import COMPUTE
from trainfabric_plan.permissions.handlers import Handler
from trainfabric_plan.permissions.network import NETWORK, PRIVATE_DNS
from trainfabric_plan.permissions.resource_types import PARALLELCLUSTER_PROVIDER, resource_types
from trainfabric_plan.permissions.scopes import Condition, Scope, Target, scopes_of
from trainfabric_plan.permissions.storage import STORAGE

HANDLERS: Mapping[str, Handler] = MappingProxyType({**COMPUTE, **NETWORK, **STORAGE})
"""Every resource type that an environment can have → what CloudFormation calls for it."""

MANAGED_POLICY_CHARACTERS = 6144
"""Characters of a customer managed policy, white space not counted. Source: IAM user guide, IAM and STS quotas, read
2026-11; a role has ten such policies unless its quota is raised."""

BOOTSTRAP_QUALIFIER = "hnb659fds"
"""Qualifier of the resources of `cdk bootstrap` where none is given. Source: AWS CDK guide, Bootstrapping."""

_RETAINED = ("AWS::EFS::FileSystem", "AWS::FSx::", "AWS::S3::")

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Actions that are allowed on the same resources and conditions."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    condition: Condition


def actions_of(environment: Environment) -> frozenset[str]:
    """IAM actions with which CloudFormation makes, changes and removes an environment.

    Where storage is retained, nothing that removes a bucket or a file system is among them: not even a mistake in a
    template can then delete data.
    """
    actions = frozenset(action for one in resource_types(environment) for action in _actions_of(one, environment))
    if environment.orchestrator != "parallelcluster":
        return actions
    return actions.union(_OF_THE_PROVIDER, *(HANDLERS[one].actions() for one in PARALLELCLUSTER_PROVIDER))


_OF_THE_PROVIDER = frozenset({"cloudformation:CreateChangeSet", "lambda:InvokeFunction"})
"""Of ParallelCluster's nested stack: its template names a transform (SAM guide: `CreateChangeSet` on it), and custom
resources call its functions."""


def _actions_of(resource_type: str, environment: Environment) -> frozenset[str]:
    if resource_type.startswith("Custom::"):
        return frozenset()
    if resource_type == "AWS::EC2::VPCEndpoint" and not _has_private_dns(environment):
        return HANDLERS[resource_type].actions() - {PRIVATE_DNS}
    kept = environment.storage.retain and resource_type.startswith(_RETAINED)
    return HANDLERS[resource_type].actions(deletes=not kept)


def _has_private_dns(environment: Environment) -> bool:
    """Whether there are interface endpoints: those of gateways have no DNS names."""
    return environment.network.vpc_id is None and environment.network.egress == "endpoints"


def deploy_policies(target: Target) -> list[Document]:
    """Documents of the managed policies of CloudFormation's execution role, each within IAM's limit of size."""
    return _split(_document_of(one) for one in deploy_statements(target))


def deploy_statements(target: Target) -> list[Statement]:
    """What CloudFormation's execution role must be allowed, by where it is allowed."""
    statements: dict[str, tuple[Scope, set[str]]] = {}
    unbounding = {"iam:DeleteRolePermissionsBoundary"} if target.boundary else set()
    for action in sorted(actions_of(target.environment) - unbounding):
        for scope in scopes_of(action, target):
            statements.setdefault(scope.sid, (scope, set()))[1].add(action)
    return [_statement(scope, actions) for _, (scope, actions) in sorted(statements.items())]


def caller_policy(target: Target, qualifier: str = BOOTSTRAP_QUALIFIER) -> Document:
    """What the person or pipeline that runs `cdk deploy` needs: to assume the roles of `cdk bootstrap`, and no more.

    Source: AWS CDK guide, Bootstrapping (names of the roles); aws-cdk-lib 2.275, DefaultStackSynthesizer, read 2026-11.
    """
    place = f"{target.account}-{target.environment.region}"
    roles = (f"role/cdk-{qualifier}-{kind}-role-{place}" for kind in ("deploy", "file-publishing", "lookup"))
    scope = Scope(sid="AssumeBootstrapRoles", resources=tuple(target.arn("iam", one, region="") for one in roles))
    return _document([_document_of(_statement(scope, {"sts:AssumeRole"}))])


def _statement(scope: Scope, actions: Iterable[str]) -> Statement:
    return Statement(
        sid=scope.sid,
        actions=tuple(sorted(actions)),
        resources=tuple(sorted(scope.resources)),
        condition=scope.condition,
    )


def _document_of(statement: Statement) -> Document:
    document: Document = {
        "Sid": statement.sid,
        "Effect": "Allow",
        "Action": list(statement.actions),
        "Resource": list(statement.resources),
    }
    return {**document, "Condition": dict(statement.condition)} if statement.condition else document


def _document(statements: list[Document]) -> Document:
    return {"Version": "2012-10-17", "Statement": statements}


def _split(statements: Iterable[Document]) -> list[Document]:
    """Documents with the statements in their order, as few as a first fit gives."""
    documents: list[list[Document]] = []
    for statement in statements:
        fitting = (one for one in documents if _characters([*one, statement]) <= MANAGED_POLICY_CHARACTERS)
        room = next(fitting, None)
        if room is None:
            documents.append([statement])
        else:
            room.append(statement)
    return [_document(one) for one in documents]


def _characters(statements: list[Document]) -> int:
    return len(json.dumps(_document(statements), separators=(",", ":")))
