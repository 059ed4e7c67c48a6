"""Passes connections on from a network namespace to services of this machine; the standard library alone.

`python -I -S start.py sandbox.relay NAMESPACE ADDRESS HOST:PORT…` listens in the namespace at the address, at the port
of every service, and connects to the service from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sandbox.namespaces import inside

CHUNK = 1 << 18


async def relay(namespace: Path, address: str, services: Sequence[tuple[str, int]]) -> None:
    """Pass on until cancelled.

    Raises:
        OSError: If the namespace may not be entered, or an address is taken.
    """
    for host, port in services:
        listener = inside(namespace, partial(socket.create_server, (address, port), backlog=256))
        await asyncio.start_server(partial(_serve, host, port), sock=listener)
    await asyncio.Event().wait()


async def _serve(host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(OSError):
        far_reader, far_writer = await asyncio.open_connection(host, port)
        with contextlib.closing(far_writer):
            await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def main(arguments: Sequence[str]) -> None:
    """See the module."""
    namespace, address, *services = arguments
    pairs = [(host, int(port)) for host, _, port in (service.rpartition(":") for service in services)]
    asyncio.run(relay(Path(namespace), address, pairs))


if __name__ == "__main__":
    main(sys.argv[1:])
