"""A stand-in for the EC2 instance metadata service, version 2, for one local node.

Source: EC2 User Guide, "Use the Instance Metadata Service to access instance metadata", "Spot Instance interruption
notices" and "EC2 instance rebalance recommendations": a token is asked for with PUT and a time to live of 1 s to 6 h;
without one, GET is a 401.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN_PATH = "/latest/api/token"
PREFIX = "/latest/meta-data/"
TTL_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN_HEADER = "X-aws-ec2-metadata-token"
LONGEST_TTL_S = 21600
NOTICE_PATH = "spot/instance-action"
REBALANCE_PATH = "events/recommendations/rebalance"
USER_DATA_PATH = "/latest/user-data"


class InstanceMetadata:
    """Serves the metadata of one node, from the start to the end of a `with` block.

    Args:
        address: Of the node, the `local-ipv4` that is answered; it is listened to at any port of it.
        values: Metadata by path below `latest/meta-data/`, such as `instance-id`.
        user_data: The instance's user data, `None` if it was launched without.
        listener: Bound where to listen, if that is not the node's address; it may be in the node's own network.
    """

    def __init__(
        self,
        address: str,
        values: Mapping[str, str],
        user_data: str | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self.address = address
        self.user_data = user_data
        self._values = {**values, "local-ipv4": address}
        self._tokens: dict[str, float] = {}
        self._server = _server(address, _handler(self), listener)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def endpoint(self) -> str:
        """Value of AWS_EC2_METADATA_SERVICE_ENDPOINT for the node."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def interrupt(self, at: str, action: str = "terminate") -> None:
        """Give the spot interruption notice: `at` is an ISO 8601 time in UTC."""
        self._values[NOTICE_PATH] = json.dumps({"action": action, "time": at})

    def recommend_rebalance(self, at: str) -> None:
        """Say that an interruption is likelier than usual, since `at`, an ISO 8601 time in UTC."""
        self._values[REBALANCE_PATH] = json.dumps({"noticeTime": at})

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> InstanceMetadata:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def new_token(self, ttl_s: int) -> str:
        """A token that is good for `ttl_s` seconds."""
        token = secrets.token_urlsafe(40)
        self._tokens[token] = time.monotonic() + ttl_s
        return token

    def accepts(self, token: str | None) -> bool:
        """Whether a token is one of ours and still good."""
        return token is not None and self._tokens.get(token, 0.0) > time.monotonic()

    def text(self, path: str) -> str | None:
        """What a GET of a whole path gives, `None` for a 404."""
        if path == USER_DATA_PATH:
            return self.user_data
        return self.value(path.removeprefix(PREFIX)) if path.startswith(PREFIX) else None

    def value(self, path: str) -> str | None:
        """The text at a path; for a directory the names in it, as EC2 lists them."""
        if path in self._values:
            return self._values[path]
        directory = path.removesuffix("/") + "/" if path else ""
        below = [name.removeprefix(directory) for name in self._values if name.startswith(directory)]
        names = {head + slash for head, slash, _ in (name.partition("/") for name in below)}
        return "\n".join(sorted(names)) or None


def _server(address: str, handler: type[BaseHTTPRequestHandler], listener: socket.socket | None) -> ThreadingHTTPServer:
    if listener is None:
        return ThreadingHTTPServer((address, 0), handler)
    server = ThreadingHTTPServer((address, 0), handler, bind_and_activate=False)
    server.socket.close()
    server.socket, server.server_address = listener, listener.getsockname()
    server.server_activate()
    return server


def _handler(metadata: InstanceMetadata) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            if self.path != TOKEN_PATH:
                self._answer(HTTPStatus.NOT_FOUND)
                return
            ttl = self.headers.get(TTL_HEADER, "")
            if not ttl.isdecimal() or not 1 <= int(ttl) <= LONGEST_TTL_S:
                self._answer(HTTPStatus.BAD_REQUEST)
                return
            self._answer(HTTPStatus.OK, metadata.new_token(int(ttl)))

        def do_GET(self) -> None:
            if not metadata.accepts(self.headers.get(TOKEN_HEADER)):
                self._answer(HTTPStatus.UNAUTHORIZED)
                return
            text = metadata.text(self.path)
            self._answer(HTTPStatus.NOT_FOUND if text is None else HTTPStatus.OK, text or "")

        def _answer(self, status: HTTPStatus, text: str = "") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: the agent asks every second."""

    return Handler
