"""Explaining a finding of cdk-nag where the resource is made, without needing cdk-nag."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

NIST = "NIST.800.53.R5"
"""How rules of cdk-nag's pack NIST 800-53 revision 5 begin."""


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Record why a rule of a validation plugin, such as `AwsSolutions-S1`, does not hold for this construct."""
    acknowledge_all(construct, {rule: reason})


def acknowledge_all(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Record why rules of a validation plugin do not hold for this construct, each with its reason."""
    rules = [Acknowledgment(id=rule, reason=reason) for rule, reason in reasons.items()]
    Validations.of(construct).acknowledge(*rules)


def acknowledge_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """Record why a policy of this construct names a resource with a wildcard."""
    acknowledge(construct, f"AwsSolutions-IAM5[Resource::{in_words(construct, resource)}]", reason)


def in_words(construct: IConstruct, value: str) -> str:
    """A value as cdk-nag 3 words it in the id of a finding: references as `<Id.Attribute>`, imports by their name."""
    return _flat(Stack.of(construct).resolve(value))


def objects_as_seen_from(construct: IConstruct, bucket: s3.IBucket, prefix: str = "") -> str:
    """The ARN of all objects of a bucket below a prefix, as the template of `construct` will have it.

    For the bucket of another stack that is an import, which CDK settles only during synthesis; exporting the value
    here gives the same name, and no second export.
    """
    owner = Stack.of(bucket)
    here = owner.node.path == Stack.of(construct).node.path
    made = bucket.node.default_child is not None
    arn = bucket.bucket_arn if here or not made else owner.export_value(bucket.bucket_arn)
    return f"{arn}/{prefix}*"


def _flat(node: Any) -> str:
    match node:
        case str():
            return node.replace("${", "<").replace("}", ">")
        case {"Fn::Join": [separator, items]}:
            return str(separator).join(_flat(item) for item in items)
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::ImportValue": name}:
            return _flat(name)
        case {"Ref": name}:
            return f"<{name}>"
        case _:
            return json.dumps(node, separators=(",", ":"))
