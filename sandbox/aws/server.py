"""The embedded AWS as an HTTP server: moto, our models, and an endpoint that tells what exists.

Clients must call it `http://localhost:PORT`: moto takes the template URLs of `cdk deploy` for its own only if they
name localhost. It listens on 127.0.0.1 alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moto.cloudformation.models import cloudformation_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Response

from sandbox.aws import moto_patches
from sandbox.aws.models import Kind
from sandbox.endpoints import RESOURCES_PATH, aws_endpoint

HOST = "127.0.0.1"
WSGI = Callable[[dict[str, Any], Any], Iterable[bytes]]


@dataclass(frozen=True, kw_only=True)
class DeployedResource:
    """One resource of a deployed stack, and how much of it exists."""

    stack: str
    logical_id: str
    type: str
    physical_id: str
    kind: str


def deployed_resources() -> Iterator[DeployedResource]:
    """Every resource of every stack in this process, ours and moto's."""
    for _, _, backend in list(cloudformation_backends.iter_backends()):
        for stack in list(backend.stacks.values()):
            for resource in list(stack.resource_map._parsed_resources.values()):
                if hasattr(resource, "cf_resource_type"):
                    yield _described(stack.name, resource)


def _described(stack: str, resource: Any) -> DeployedResource:
    return DeployedResource(
        stack=stack,
        logical_id=resource.logical_resource_id,
        type=resource.cf_resource_type,
        physical_id=str(getattr(resource, "physical_resource_id", "")),
        kind=str(getattr(resource, "kind", Kind.REAL)),
    )


def with_resources(application: WSGI) -> WSGI:
    """The application, with `RESOURCES_PATH` answered by us."""

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != RESOURCES_PATH:
            return application(environ, start_response)
        body = json.dumps([asdict(resource) for resource in deployed_resources()])
        return Response(body, mimetype="application/json")(environ, start_response)

    return answer


class QuietRequestHandler(MotoRequestHandler):  # type: ignore[misc]
    """Logs what went wrong on our side, not every request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log answers from 500 up."""
        if str(code) >= "500":
            super().log_request(code, size)


def make_aws(port: int) -> BaseWSGIServer:
    """A listening server on `port` (0 for a free one); call `serve_forever`."""
    moto_patches.install()
    application = with_resources(DomainDispatcherApplication(create_backend_app))
    return make_server(HOST, port, application, threaded=True, request_handler=QuietRequestHandler)


def serve(port: int, ready_file: Path | None = None) -> None:
    """Serve until the process is told to end; `ready_file` gets `{"endpoint": …}` once requests are answered."""
    server = make_aws(port)
    endpoint = aws_endpoint(server.port)
    if ready_file is not None:
        written = ready_file.with_suffix(".part")
        written.write_text(json.dumps({"endpoint": endpoint}))
        written.rename(ready_file)
    print(endpoint, flush=True)
    server.serve_forever()
