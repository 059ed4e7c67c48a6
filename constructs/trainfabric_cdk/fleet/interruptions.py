"""Telling people and the coordinator that EC2 is about to take nodes back."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

DETAIL_TYPES = (
    "EC2 Spot Instance Interruption Warning",
    "EC2 Instance Rebalance Recommendation",
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
)
"""What EC2 sends about single nodes (EC2 user guide: spot-instance-termination-notices, rebalance-recommendations,
monitor-interruptible-cr, whose copies of 2026 give the last one both names)."""

BLOCK_PREFIX = "Capacity Block"
"""How events about Capacity Blocks begin: copies of the EC2 user guide (capacity-blocks-monitor) go on as `Expiration
Warning` and as `Reservation Expiration Warning`."""

KEPT = Duration.minutes(5)
"""A notice is two minutes long: an older one says nothing that a controller could still use."""

_TRIES = 3


class InterruptionNotices(Construct):
    """What EC2 announces about nodes of the account in this region, for people and for the coordinator of the fleet.

    EC2's events carry no tags, so that every fleet of a region hears of all nodes: people filter, and the controller
    looks for instance ids of its own. Spot nodes read their instance metadata as well, whichever is first; a node of an
    interruptible reservation is announced through EventBridge alone (EC2 user guide, monitor-interruptible-cr).

    Attributes:
        topic: Subscribe to it. Encrypted with a key of its own.
        queue: What the controller reads; encrypted with a key of SQS, TLS only.
        failed: What could not be delivered to the queue, or was received and not dealt with; kept for two weeks.
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
        self.failed = _queue(self, "Failed", Duration.days(14))
        self.queue = _queue(self, "Queue", KEPT, sqs.DeadLetterQueue(queue=self.failed, max_receive_count=_TRIES))
        self._rule("Rule", "Interruption warnings and rebalance recommendations of nodes", list(DETAIL_TYPES))
        self._rule("Blocks", "Beginning and end of Capacity Blocks", events.Match.prefix(BLOCK_PREFIX))

    def grant_receive(self, grantee: iam.IGrantable) -> iam.Grant:
        """Receive notices from the queue and delete what is dealt with."""
        return self.queue.grant(grantee, "sqs:ReceiveMessage", "sqs:DeleteMessage")

    def _rule(self, id: str, description: str, detail_type: list[str]) -> None:
        events.Rule(
            self,
            id,
            description=description,
            event_pattern=events.EventPattern(source=["aws.ec2"], detail_type=detail_type),
            targets=[
                targets.SnsTopic(self.topic),
                targets.SqsQueue(self.queue, dead_letter_queue=self.failed, max_event_age=KEPT),
            ],
        )


def _queue(scope: Construct, id: str, kept: Duration, failed: sqs.DeadLetterQueue | None = None) -> sqs.Queue:
    return sqs.Queue(
        scope,
        id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=kept,
        dead_letter_queue=failed,
        removal_policy=RemovalPolicy.DESTROY,
    )
