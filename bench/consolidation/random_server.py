"""A model server that is killed and started again, life after life."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fleet import Fleet
from load.http_client import HttpClient
from local_server import ServerError
from model_servers.model_server import ModelServer

# The sums of answers, by batch.
Sums = dict[int, str]


@dataclass
class Life:
    """One process."""

    server: ModelServer
    sums: Sums  # what it answered at first
    killed: bool = False  # what it was asked and has not answered may fail
    client: HttpClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = HttpClient(self.server.target.host, self.server.target.port)


@dataclass
class RandomServer:
    """Made in the event loop, and used there."""

    number: int
    name: str
    kind: str
    expected: Sums
    peak_bytes: int  # the most that it had for all batches
    life: Life | None  # None: it is being started
    lives: int = 1
    under_way: int = 0  # requests
    # Held while it is killed and started, and while its limit is another one.
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Cleared while its limit is below what it holds: then nobody asks it anything.
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.asked.set()


def warm(server: ModelServer, batches: Sequence[int], deadline: float) -> tuple[Sums, int]:
    """Loads it, and asks for every batch once; how often loading was refused before.

    ServerError when that does not work. Other processes hold nearly all memory: a load may
    have to be tried again.
    """
    server.await_port(deadline)
    refused = 0
    while True:
        status, said = _ask(server, "/load", {"share_bytes": None}, deadline)
        if status == 200:
            break
        if status != 503 or time.monotonic() > deadline:
            raise ServerError(f"{server.name} is not loaded: {said.get('error', status)}")
        refused += 1
        time.sleep(0.1)  # between two attempts
    sums = {}
    for batch in sorted(batches, reverse=True):
        status, said = _ask(server, "/infer", {"batch": batch}, deadline)
        if status != 200:
            raise ServerError(f"{server.name}, batch {batch}: {said.get('error', status)}")
        sums[batch] = str(said["sum"])
    return sums, refused


def _ask(
    server: ModelServer, path: str, body: dict[str, object], deadline: float
) -> tuple[int, dict[str, object]]:
    return server.ask("POST", path, body, within=max(1.0, deadline - time.monotonic()))


def processes_of(server: ModelServer) -> list[int]:
    """It and its children, of which llama.cpp's server is one."""
    found = [server.pid]
    for thread in pathlib.Path(f"/proc/{server.pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended
            found += map(int, thread.read_text().split())
    return found


def start_again(
    fleet: Fleet, number: int, life: int, batches: Sequence[int], deadline: float
) -> tuple[Life, int]:
    """As warm(). A process with which it does not work is killed."""
    server = fleet.start_again(number, life)
    try:
        sums, refused = warm(server, batches, deadline)
    except BaseException:
        server.kill()
        raise
    return Life(server, sums), refused
