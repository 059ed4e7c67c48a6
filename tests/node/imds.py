"""An instance metadata service, version 2, as far as a node asks it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Imds:
    """What it answers; a test changes `values`, or forgets `tokens` to let them expire."""

    values: dict[str, str] = field(
        default_factory=lambda: {
            "instance-id": "i-0123456789abcdef0",
            "local-ipv4": "10.0.0.7",
            "instance-type": "p5.48xlarge",
        }
    )
    tokens: set[str] = field(default_factory=set)
    tokens_given: int = 0
    endpoint: str = ""

    def new_token(self) -> str:
        self.tokens_given += 1
        token = f"token-{self.tokens_given}"
        self.tokens.add(token)
        return token


@contextlib.contextmanager
def running_imds() -> Iterator[Imds]:
    service = Imds()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            asked = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            self._answer(200, service.new_token()) if asked else self._answer(400, "")

        def do_GET(self) -> None:
            name = self.path.removeprefix("/latest/meta-data/")
            if self.headers["X-aws-ec2-metadata-token"] not in service.tokens:
                self._answer(401, "")
            elif name in service.values:
                self._answer(200, service.values[name])
            else:
                self._answer(404, "")

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    service.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
