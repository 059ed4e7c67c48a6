"""Something between the user and AWS answers in AWS's place: a proxy, a captive portal, a broken endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.httpsession import URLLib3Session

from trainfabric_cli.account.answers import Unknown, ask

IDENTITY = b"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/ada</Arn><UserId>AIDA</UserId><Account>123456789012</Account>
</GetCallerIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>"""
REGIONS = b"""<DescribeRegionsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>2</requestId>
<regionInfo><item><regionName>us-east-1</regionName><optInStatus>opt-in-not-required</optInStatus></item></regionInfo>
</DescribeRegionsResponse>"""
HTML = b"<!DOCTYPE html><html><body>Blocked<br></body></html>"
XHTML = b"<html><body>Log in first</body></html>"
FIND = ("capacity", "find", "-t", "p5.48xlarge", "-n", "4", "--hours", "48", "--json")

Put = Callable[[int, bytes, tuple[bytes, ...]], None]


@pytest.fixture
def between(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Answers every request but those of some operations with a page."""

    def put(status: int, page: bytes, of_aws: tuple[bytes, ...]) -> None:
        def send(_: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
            body = request.body or b""
            asked = body.encode() if isinstance(body, str) else body
            known = {b"GetCallerIdentity": IDENTITY, b"DescribeRegions": REGIONS}
            answer = next((known[one] for one in of_aws if one in asked), None)
            response = AWSResponse(request.url, status if answer is None else 200, HTTPHeaders(), None)
            response._content = page if answer is None else answer  # type: ignore[attr-defined]
            return response

        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        monkeypatch.setattr(URLLib3Session, "send", send)

    return put


@pytest.mark.parametrize(("status", "page"), [(403, HTML), (200, HTML), (200, XHTML)])
def test_a_page_in_the_place_of_an_answer_is_unknown_and_never_nothing(
    trainfabric: Any, between: Put, status: int, page: bytes
) -> None:
    between(status, page, (b"GetCallerIdentity", b"DescribeRegions"))

    ended = trainfabric(*FIND)

    assert (ended.status, ended.err) == (0, "")
    offered = ["offered: ec2:DescribeInstanceTypeOfferings: an answer that is not of AWS"]
    assert {one["kind"]: one["reasons"] for one in ended.json["offers"]} == {
        "on_demand": offered,
        "spot": offered,
        "capacity_block": ["blocks: ec2:DescribeCapacityBlockOfferings: an answer that is not of AWS"],
    }


def test_all_checks_are_shown_behind_a_proxy(trainfabric: Any, environment_file: Any, between: Put) -> None:
    between(403, HTML, (b"GetCallerIdentity", b"DescribeRegions"))

    ended = trainfabric("capacity", "check", environment_file(), "--json")

    assert (ended.status, ended.err) == (0, "")
    assert {one["status"] for one in ended.json["checks"]} == {"unknown"}
    assert "ec2:DescribeVpcs: an answer that is not of AWS" in str(ended.json)


@pytest.mark.parametrize("page", [XHTML, HTML])
def test_where_even_the_identity_is_a_page_the_command_says_so(trainfabric: Any, between: Put, page: bytes) -> None:
    between(200, page, ())

    ended = trainfabric(*FIND)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "capacity: sts must answer, got an answer that is not of AWS; check the network and AWS_ENDPOINT_URL\n"
    )


def raising(error: Exception) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize("error", [KeyError("Quota"), ValueError("not a number"), TypeError("no list")])
def test_an_answer_without_what_was_asked_for_is_unknown(error: Exception) -> None:
    found = ask("ec2:DescribeVpcs", raising(error))

    assert found == Unknown("ec2:DescribeVpcs: an answer that is not of AWS")


def test_a_connection_that_breaks_is_no_answer() -> None:
    assert ask("ec2:DescribeVpcs", raising(ConnectionResetError())) == Unknown(
        "no answer to ec2:DescribeVpcs: ConnectionResetError"
    )
