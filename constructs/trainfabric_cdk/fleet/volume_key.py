"""A customer key for the nodes' volumes, and who must be able to use it."""

from __future__ import annotations

from aws_cdk import Annotations
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from trainfabric_cdk.storage.key import SERVICE_ROLES, grant_service_roles


def let_services_launch(scope: IConstruct, key: kms.IKey) -> None:
    """Let Auto Scaling's and Spot's service-linked roles launch nodes whose volumes the key encrypts.

    Without it a group launches nodes that end at once (Auto Scaling user guide, key-policy-requirements-EBS-encryption,
    read 2026-11-30). The policy of a key that is imported stays as it is, and nothing here can read it: a warning says
    what it must allow.
    """
    if not grant_service_roles(key):
        autoscaling, spot = (role.rpartition("/")[2] for role in SERVICE_ROLES)
        Annotations.of(scope).add_warning_v2(
            "trainfabric:volumeKeyPolicy",
            f"the policy of the volumes' key is its owner's: if it does not let {autoscaling} and {spot} use the key "
            "and create grants, nodes end at once with Client.InternalError; "
            "docs/how-to/use-existing-resources.md has the statements",
        )
