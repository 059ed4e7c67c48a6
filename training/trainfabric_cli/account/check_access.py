"""Whether who deploys may: account, CDK bootstrap, service-linked roles, permissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainfabric_cli.account.answers import Unknown, ask, pages
from trainfabric_cli.account.checks import Check, Status, judged
from trainfabric_cli.account.session import Account
from trainfabric_plan.environment import Environment
from trainfabric_plan.permissions import Statement, Target, deploy_statements, service_linked_roles

_BOOTSTRAP_VERSION = 6
"""Least version of the bootstrap stack. Source: `requiresBootstrapStackVersion` in the assembly that aws-cdk-lib 2.275
writes for the environment's stacks."""

_AT_ONCE = 50
"""Actions in one simulation."""

_MADE_ON_USE = ("autoscaling.amazonaws.com", "fsx.amazonaws.com", "elasticfilesystem.amazonaws.com")
"""Services that make their role when it is first needed, if who deploys may (their user guides, Using service-linked
roles)."""


def access_checks(account: Account, environment: Environment, qualifier: str) -> list[Check]:
    """Checks of who deploys, and of what a deploy stands on."""
    return [
        *_account(account, environment),
        _bootstrap(account, environment, qualifier),
        *_service_linked_roles(account, environment),
        *_permissions(account, environment, qualifier),
    ]


def _account(account: Account, environment: Environment) -> list[Check]:
    if environment.account is None:
        return []
    remedy = "take credentials of that account, or correct account in the environment file"
    mine = account.identity.account
    return [judged("account", mine, environment.account, fits=lambda one: one == environment.account, remedy=remedy)]


def _bootstrap(account: Account, environment: Environment, qualifier: str) -> Check:
    ssm = account.client("ssm", environment.region)
    name = f"/cdk-bootstrap/{qualifier}/version"
    answer = ask("ssm:GetParameter", lambda: int(ssm.get_parameter(Name=name)["Parameter"]["Value"]))
    if isinstance(answer, Unknown) and answer.why.endswith("ParameterNotFound"):
        answer = 0
    place = f"aws://{account.identity.account}/{environment.region}"
    return judged(
        "CDK bootstrap",
        answer,
        f"version {_BOOTSTRAP_VERSION} or later",
        fits=lambda found: found >= _BOOTSTRAP_VERSION,
        shown=lambda found: f"version {found}" if found else "none",
        remedy=f"cdk bootstrap {place}; trainfabric policy says with which policies",
    )


def _service_linked_roles(account: Account, environment: Environment) -> list[Check]:
    """The role of a file system's links has the file system's id in its name, so it is made with it."""
    iam = account.client("iam", account.home)
    names = {service: name for service, name in service_linked_roles(environment).items() if not name.endswith("_")}
    return [_service_linked_role(iam, service, name, environment) for service, name in sorted(names.items())]


def _service_linked_role(iam: Any, service: str, name: str, environment: Environment) -> Check:
    answer = ask("iam:GetRole", lambda: str(iam.get_role(RoleName=name)["Role"]["RoleName"]))
    if isinstance(answer, Unknown) and answer.why.endswith("NoSuchEntity"):
        answer = "none"
    # A key's policy can only name a role that exists.
    before = service not in _MADE_ON_USE or environment.storage.kms_key_arn is not None
    return judged(
        name,
        answer,
        "there before the deploy" if before else "there, or made on first use",
        fits=lambda found: found == name or not before,
        shown=lambda found: "there" if found == name else found,
        remedy=f"aws iam create-service-linked-role --aws-service-name {service}",
    )


def _permissions(account: Account, environment: Environment, qualifier: str) -> list[Check]:
    """Of CloudFormation's execution role for the resources, and of the caller for the roles of the bootstrap.

    The simulator's answer can differ from what AWS does: it knows no policies of resources (IAM API reference).
    """
    mine, region = account.identity.account, environment.region
    target = Target(environment=environment, account=mine)
    execution = target.arn("iam", f"role/cdk-{qualifier}-cfn-exec-role-{mine}-{region}", region="")
    deploy = target.arn("iam", f"role/cdk-{qualifier}-deploy-role-{mine}-{region}", region="")
    iam = account.client("iam", account.home)
    assume = Statement(sid="Assume", actions=("sts:AssumeRole",), resources=(deploy,), condition={})
    return [
        _simulated("permission to assume the deploy role", iam, _principal(iam, account.identity.arn), [assume]),
        _simulated("permissions of CloudFormation's role", iam, execution, deploy_statements(target)),
    ]


def _principal(iam: Any, arn: str) -> str:
    """The ARN that has the policies: of an assumed role's session, the role's, with its path where IAM tells it."""
    if ":assumed-role/" not in arn:
        return arn
    head, _, rest = arn.partition(":assumed-role/")
    name = rest.split("/")[0]
    found = ask("iam:GetRole", lambda: str(iam.get_role(RoleName=name)["Role"]["Arn"]))
    return f"{head.replace(':sts:', ':iam:')}:role/{name}" if isinstance(found, Unknown) else found


def _simulated(name: str, iam: Any, principal: str, statements: list[Statement]) -> Check:
    needed = {action for one in statements for action in one.actions}
    if principal.endswith(":root"):
        return Check(name=name, found="the root user", needed=_counted(len(needed)), status=Status.OK)
    answer = ask("iam:SimulatePrincipalPolicy", lambda: sorted(set(_denied(iam, principal, statements))))
    if isinstance(answer, Unknown) and answer.why.endswith("NoSuchEntity"):
        answer = Unknown(f"there is no {principal.rsplit('/', 1)[-1]}")
    return judged(
        name,
        answer,
        _counted(len(needed)),
        fits=lambda denied: not denied,
        shown=lambda denied: f"denied: {_few(denied)}" if denied else "all allowed",
        remedy="trainfabric policy ENVIRONMENT_FILE writes what is needed",
    )


def _counted(actions: int) -> str:
    return "1 action" if actions == 1 else f"{actions} actions"


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _denied(iam: Any, principal: str, statements: list[Statement]) -> Iterator[str]:
    """Actions that are denied, each on the first resource of its statement and under the statement's conditions."""
    for one in statements:
        for start in range(0, len(one.actions), _AT_ONCE):
            results = pages(
                iam,
                "simulate_principal_policy",
                "EvaluationResults",
                PolicySourceArn=principal,
                ActionNames=list(one.actions[start : start + _AT_ONCE]),
                ResourceArns=[_instance_of(one.resources[0])],
                ContextEntries=list(_context(one)),
            )
            yield from (result["EvalActionName"] for result in results if result["EvalDecision"] != "allowed")


def _instance_of(pattern: str) -> str:
    return pattern if pattern == "*" else pattern.replace("*", "example")


def _context(statement: Statement) -> Iterator[dict[str, Any]]:
    """What a request would say of itself: the first value that each condition allows."""
    for keys in statement.condition.values():
        for key, value in keys.items():
            values = [value] if isinstance(value, str) else list(value)
            yield {"ContextKeyName": key, "ContextKeyValues": values[:1], "ContextKeyType": "string"}
