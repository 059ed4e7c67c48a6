"""What EC2 announces about nodes, for people and for the coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from trainfabric_cdk.fleet.interruptions import InterruptionNotices

Properties = Callable[[str], list[dict[str, Any]]]
Resources = Callable[[str], dict[str, Any]]


@pytest.fixture
def notices(stack: cdk.Stack) -> InterruptionNotices:
    return InterruptionNotices(stack, "Notices")


def id_of(stack: cdk.Stack, value: str) -> str:
    """Logical id that a reference or an attribute of a resource names."""
    resolved = stack.resolve(value)
    return str(resolved.get("Ref") or resolved["Fn::GetAtt"][0])


@pytest.mark.usefixtures("notices")
def test_notices_about_nodes_of_every_kind_of_capacity_are_heard(properties: Properties) -> None:
    patterns = [rule["EventPattern"] for rule in properties("AWS::Events::Rule")]

    assert patterns == [
        {
            "source": ["aws.ec2"],
            "detail-type": [
                "EC2 Spot Instance Interruption Warning",
                "EC2 Instance Rebalance Recommendation",
                "EC2 Capacity Reservation Instance Interruption Warning",
                "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
            ],
        },
        {"source": ["aws.ec2"], "detail-type": [{"prefix": "Capacity Block"}]},
    ]


def test_every_notice_goes_to_people_and_to_the_queue_of_the_coordinator(
    stack: cdk.Stack, notices: InterruptionNotices, properties: Properties
) -> None:
    topic, queue = id_of(stack, notices.topic.topic_arn), id_of(stack, notices.queue.queue_arn)
    failed = id_of(stack, notices.failed.queue_arn)
    for rule in properties("AWS::Events::Rule"):
        people, coordinator = rule["Targets"]
        assert people["Arn"] == {"Ref": topic}
        assert coordinator["Arn"] == {"Fn::GetAtt": [queue, "Arn"]}
        assert coordinator["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [failed, "Arn"]}}


def test_the_topic_is_encrypted_with_a_key_that_eventbridge_may_use(
    notices: InterruptionNotices, properties: Properties
) -> None:
    (topic,), (key,) = properties("AWS::SNS::Topic"), properties("AWS::KMS::Key")
    assert "KmsMasterKeyId" in topic
    assert key["EnableKeyRotation"] is True
    publisher = {"Service": "events.amazonaws.com"}
    allowed = [one["Action"] for one in key["KeyPolicy"]["Statement"] if one["Principal"] == publisher]
    assert {"kms:Decrypt", "kms:GenerateDataKey*"} <= {action for actions in allowed for action in actions}


def test_a_notice_that_nobody_reads_is_gone_after_five_minutes_and_one_that_nobody_can_read_is_kept(
    stack: cdk.Stack, notices: InterruptionNotices, resources: Resources
) -> None:
    queues = {id: queue["Properties"] for id, queue in resources("AWS::SQS::Queue").items()}
    queue, failed = (id_of(stack, each.queue_arn) for each in (notices.queue, notices.failed))

    assert queues[queue] == {
        "MessageRetentionPeriod": 300,
        "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": [failed, "Arn"]}, "maxReceiveCount": 3},
        "SqsManagedSseEnabled": True,
    }
    assert queues[failed] == {"MessageRetentionPeriod": 1_209_600, "SqsManagedSseEnabled": True}


@pytest.mark.usefixtures("notices")
def test_the_queues_are_reached_over_tls_only(properties: Properties) -> None:
    for policy in properties("AWS::SQS::QueuePolicy"):
        (denied,) = [part for part in policy["PolicyDocument"]["Statement"] if part["Effect"] == "Deny"]
        assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_who_may_receive_may_delete_and_do_nothing_else(
    stack: cdk.Stack, notices: InterruptionNotices, properties: Properties
) -> None:
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))

    notices.grant_receive(role)

    (policy,) = properties("AWS::IAM::Policy")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["sqs:ReceiveMessage", "sqs:DeleteMessage"]
    assert statement["Resource"] == {"Fn::GetAtt": [id_of(stack, notices.queue.queue_arn), "Arn"]}
