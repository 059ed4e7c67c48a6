"""Resource policies, put into moto's buckets, topics and queues."""

from __future__ import annotations

import json
from typing import Any

from moto.s3.models import s3_backends
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends

from sandbox.aws.models.base import Kind, Resource, existing


class BucketPolicy(Resource):
    """The policy of a bucket."""

    TYPE = "AWS::S3::BucketPolicy"
    KIND = Kind.REAL
    API = ("s3", "PutBucketPolicy")

    def create(self) -> str:
        """Put the policy on the bucket."""
        name = str(self.properties["Bucket"])
        existing("bucket", name, self._backend.get_bucket)
        self._backend.put_bucket_policy(name, json.dumps(self.properties["PolicyDocument"]).encode())
        return name

    def remove(self) -> None:
        """Take it off, if the bucket is still there."""
        if self.physical_resource_id in self._backend.buckets:
            self._backend.delete_bucket_policy(self.physical_resource_id)

    @property
    def _backend(self) -> Any:
        return s3_backends[self.account]["aws"]

    @classmethod
    def api_parameters(cls, properties: dict[str, Any]) -> dict[str, Any]:
        """PutBucketPolicy takes the document as text."""
        return {"Bucket": properties["Bucket"], "Policy": json.dumps(properties["PolicyDocument"])}


class TopicPolicy(Resource):
    """The policy of one or several topics."""

    TYPE = "AWS::SNS::TopicPolicy"
    KIND = Kind.REAL
    ATTRIBUTES = ("Id",)

    def create(self) -> str:
        """Set the attribute Policy of every topic."""
        for topic in self.properties["Topics"]:
            found = existing("topic", topic, self._backend.get_topic)
            found.policy = json.dumps(self.properties["PolicyDocument"])
        return self.name

    @property
    def _backend(self) -> Any:
        return sns_backends[self.account][self.region]


class QueuePolicy(Resource):
    """The policy of one or several queues."""

    TYPE = "AWS::SQS::QueuePolicy"
    KIND = Kind.REAL
    ATTRIBUTES = ("Id",)

    def create(self) -> str:
        """Set the attribute Policy of every queue."""
        for url in self.properties["Queues"]:
            found = existing("queue", url.rsplit("/", 1)[-1], self._backend.get_queue)
            found.policy = json.dumps(self.properties["PolicyDocument"])
        return self.name

    @property
    def _backend(self) -> Any:
        return sqs_backends[self.account][self.region]
