"""Telling people that EC2 is about to take spot nodes back."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

DETAIL_TYPES = ("EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation")


class InterruptionNotices(Construct):
    """An encrypted topic that gets every spot warning of the account in this region: EC2's events carry no tags.

    The nodes do not depend on it, they read their own instance metadata; the topic is for people and dashboards.

    Attributes:
        topic: Subscribe to it.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        key = kms.Key(
            self,
            "Key",
            description="Spot interruption notices",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        # The AWS-managed key of SNS does not let EventBridge publish (SNS developer guide, key management).
        key.grant_encrypt_decrypt(iam.ServicePrincipal("events.amazonaws.com"))
        self.topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        events.Rule(
            self,
            "Rule",
            description="Spot interruption warnings and rebalance recommendations",
            event_pattern=events.EventPattern(source=["aws.ec2"], detail_type=list(DETAIL_TYPES)),
            targets=[targets.SnsTopic(self.topic)],
        )
