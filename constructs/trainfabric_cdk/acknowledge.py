"""Explaining a finding of cdk-nag where the resource is made, without needing cdk-nag."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Record why a rule of a validation plugin, such as `AwsSolutions-S1`, does not hold for this construct."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
