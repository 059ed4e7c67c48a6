"""The user's session with AWS: who asks, and in which regions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import boto3
from botocore.config import Config

from trainfabric_cli.account.answers import answer_of_aws, refuse_other_answers
from trainfabric_node.jobs.aws import aws_errors
from trainfabric_plan.errors import InvalidInput, Mistake

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 2}, connect_timeout=5, read_timeout=20)
"""A region that does not answer costs seconds, not the minutes of botocore's defaults."""

_HOME = "us-east-1"
"""Region that is asked for the list of regions where the user's configuration names none."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who asks.

    Attributes:
        account: AWS account.
        arn: ARN of the user or of the session of a role.
    """

    account: str
    arn: str


class Account:
    """A session with AWS as boto3 finds it."""

    def __init__(self, where: str, profile: str | None = None) -> None:
        """Connect.

        Raises:
            Unreachable: If there are no credentials, or AWS does not accept them.
        """
        self._where = where
        with aws_errors(where, "sts"):
            self._session = boto3.session.Session(profile_name=profile)
            self.home = self._session.region_name or _HOME
            client = self.client("sts", self.home)
            with answer_of_aws():
                identity = client.get_caller_identity()
        self.identity = Identity(account=identity["Account"], arn=identity["Arn"])

    def client(self, service: str, region: str) -> Any:
        """A client of a service that gives up after seconds, and takes answers of AWS alone."""
        client = self._session.client(service, region_name=region, config=_CONFIG)
        client.meta.events.register("after-call", refuse_other_answers)
        return client

    def regions(self, wanted: Iterable[str]) -> list[str]:
        """The regions to ask: those that are wanted, or all that the account has enabled.

        Raises:
            Unreachable: If EC2 does not tell the regions.
            InvalidInput: If a wanted region does not exist or is not enabled, all of them together.
        """
        with aws_errors(self._where, "ec2"):
            client = self.client("ec2", self.home)
            with answer_of_aws():
                listed = client.describe_regions(AllRegions=True)["Regions"]
        enabled = {one["RegionName"]: one.get("OptInStatus") != "not-opted-in" for one in listed}
        asked = list(dict.fromkeys(wanted))
        mistakes = [_mistake(self._where, one, enabled) for one in asked if not enabled.get(one)]
        if mistakes:
            raise InvalidInput(mistakes)
        return asked or sorted(one for one, usable in enabled.items() if usable)


def _mistake(where: str, region: str, enabled: dict[str, bool]) -> Mistake:
    if region in enabled:
        remedy = f"enable it (aws account enable-region --region-name {region}), or leave it out"
        return Mistake(where=where, name="region", rule="enabled in the account", got=region, remedy=remedy)
    near = get_close_matches(region, enabled, 1)
    remedy = f"did you mean {near[0]}?" if near else "aws ec2 describe-regions lists them"
    return Mistake(where=where, name="region", rule="a region of AWS", got=region, remedy=remedy)
