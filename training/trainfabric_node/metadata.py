"""The instance metadata service, version 2: who this node is, and whether EC2 wants it back.

Source: EC2 User Guide, "Use the Instance Metadata Service" and "Spot Instance interruption notices": a token by PUT,
then GET with it, 401 once it has expired; `spot/instance-action` is 404 until a notice is given, two minutes ahead,
best effort; "EC2 instance rebalance recommendations": `events/recommendations/rebalance` is 404 until there is one.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainfabric_plan.errors import Unreachable

_TOKEN_TTL_S = 21600
_RENEW_S = 60
"""Before a token expires it is renewed, so that no look for a notice is lost to an expired one."""

_TIMEOUT_S = 2.0
_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class SpotAction:
    """A notice: EC2 does `action` (terminate, stop or hibernate) with this node at `time` (ISO 8601, UTC)."""

    action: str
    time: str


class InstanceMetadata:
    """A client of the metadata service; asks for a new token before the old one expires, and when it is refused.

    All methods raise `Unreachable` if the service does not answer.

    Args:
        endpoint: Address of the service.
        clock: Seconds, monotonic.
    """

    def __init__(self, endpoint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._clock = clock
        self._token: str | None = None
        self._token_until = 0.0
        # no proxy: the address is link-local
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def instance_id(self) -> str:
        """Such as `i-0123456789abcdef0`."""
        return self._required("instance-id")

    def local_ipv4(self) -> str:
        """Private address of the primary interface."""
        return self._required("local-ipv4")

    def instance_type(self) -> str:
        """Such as `p5.48xlarge`."""
        return self._required("instance-type")

    def image_id(self) -> str | None:
        """The image that the node was launched from, such as `ami-0123456789abcdef0`; `None` if it is not told."""
        return self._get("ami-id")

    def rebalance(self) -> str | None:
        """When EC2 recommended to replace this node, as it may well take it back (ISO 8601, UTC); `None` if never."""
        found = self._object("events/recommendations/rebalance", "noticeTime")
        return None if found is None else found["noticeTime"]

    def spot_action(self) -> SpotAction | None:
        """The interruption notice, if there is one."""
        found = self._object("spot/instance-action", "action", "time")
        return None if found is None else SpotAction(action=found["action"], time=found["time"])

    def _object(self, name: str, *fields: str) -> dict[str, str] | None:
        text = self._get(name)
        if text is None:
            return None
        try:
            found = json.loads(text)
            return {field: str(found[field]) for field in fields}
        except (ValueError, KeyError, TypeError):
            raise self._unreachable(name, f"{text[:200]!r}") from None

    def _required(self, name: str) -> str:
        text = self._get(name)
        if text is None:
            raise self._unreachable(name, "404 not found")
        return text

    def _get(self, name: str) -> str | None:
        """The value of a name, `None` if the service has none."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._ask(name)
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return None
                self._token = None
                reason: object = f"{error.code} {error.reason}".lower()
            except OSError as error:
                reason = getattr(error, "reason", error)
            if attempt + 1 < _ATTEMPTS:
                time.sleep(0.2 * 2**attempt)
        raise self._unreachable(name, reason)

    def _ask(self, name: str) -> str:
        if self._token is None or self._clock() > self._token_until:
            ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_TTL_S)}
            self._token = self._request("PUT", "/latest/api/token", ttl)
            self._token_until = self._clock() + _TOKEN_TTL_S - _RENEW_S
        return self._request("GET", f"/latest/meta-data/{name}", {"X-aws-ec2-metadata-token": self._token})

    def _request(self, method: str, path: str, headers: dict[str, str]) -> str:
        request = urllib.request.Request(self._endpoint + path, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as response:
                body: Any = response.read()
        except urllib.error.HTTPError as error:
            error.close()
            raise
        return str(body.decode())

    def _unreachable(self, name: str, reason: object) -> Unreachable:
        remedy = "is this an EC2 instance with the metadata service on?"
        return Unreachable(f"{self._endpoint}: instance metadata must answer for {name}, got {reason}; {remedy}")
