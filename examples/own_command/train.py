"""Training code that knows nothing of trainfabric but its variables: it counts, saves, resumes, and leaves when asked.

The nodes agree on every step over a TCP connection to rank 0, as a framework's collectives would have them do.
"""

import json
import os
import pathlib
import socket
import sys
import time

STEPS = int(sys.argv[1])
PAUSE_S, SAVE_EVERY = 0.1, 5
RANK, NODES = int(os.environ["NODE_RANK"]), int(os.environ["NNODES"])
STOP = pathlib.Path(os.environ["TRAINFABRIC_STOP_FILE"])
SAVED = pathlib.Path(os.environ["TRAINFABRIC_LUSTRE"], "own", os.environ["TRAINFABRIC_JOB"], "state.json")
LEAVE = 75


def connect() -> list[socket.socket]:
    """Rank 0: a connection to each of the others; the others: one to rank 0."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if RANK == 0:
        server = socket.create_server(address)
        return [server.accept()[0] for _ in range(NODES - 1)]
    for _ in range(100):
        try:
            return [socket.create_connection(address)]
        except ConnectionRefusedError:
            time.sleep(0.1)
    sys.exit("rank 0 is not there")


def agree(peers: list[socket.socket], value: int) -> int:
    """The sum of a small number over all nodes."""
    if RANK == 0:
        total = value + sum(receive(peer) for peer in peers)
        for peer in peers:
            peer.sendall(bytes([total]))
        return total
    peers[0].sendall(bytes([value]))
    return receive(peers[0])


def receive(peer: socket.socket) -> int:
    """One number of a peer."""
    data = peer.recv(1)
    if not data:
        sys.exit("Connection closed by peer")
    return data[0]


def save(step: int, weight: float) -> None:
    """Rank 0 saves where all nodes see it, whole or not at all."""
    if RANK == 0:
        SAVED.parent.mkdir(parents=True, exist_ok=True)
        new = SAVED.with_suffix(".new")
        new.write_text(json.dumps({"step": step, "weight": weight}))
        new.replace(SAVED)


def main() -> int:
    """Trains from the last save to the last step."""
    state = json.loads(SAVED.read_text()) if SAVED.exists() else {"step": 0, "weight": 0.0}
    step, weight, peers = state["step"], state["weight"], connect()
    print(f"node {RANK} of {NODES} goes on after step {step} in {pathlib.Path.cwd().name}", flush=True)
    with pathlib.Path(os.environ["TRAINFABRIC_PROGRESS_FILE"]).open("a") as progress:
        while step < STEPS:
            time.sleep(PAUSE_S)
            step, weight = step + 1, weight + (1 - weight) / 10
            line = {"step": step, "loss": 1 - weight}
            print(json.dumps(line), file=progress, flush=True)
            leaving = agree(peers, int(STOP.exists())) > 0
            if leaving or step % SAVE_EVERY == 0:
                save(step, weight)
            if leaving:
                return LEAVE
        save(step, weight)
    return 0


sys.exit(main())
