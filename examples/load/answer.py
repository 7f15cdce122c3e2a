"""The outcome of one request."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Answer:
    """Times are milliseconds; latency is counted from when the request was due."""

    model: str
    batch: int
    due_ms: float  # after the replay's begin
    late_ms: float  # sent so much later than due: the load generator's own fault
    latency_ms: float
    ok: bool
    error: str = ""
    sum: str = ""
    met_evicted: bool = False
    wait_ms: float = 0.0  # of entering the gate
    run_ms: float = 0.0  # of the work itself
    sent_at: float = 0.0  # the Unix time at which it was sent
    queue_ms: float = 0.0  # behind others in the server; 0 where that does not say it
    began_at: float = 0.0  # the Unix time at which its turn came there; 0: not said
    retried_ms: float = 0.0  # from then to its last attempt: what came before found no memory
    right: bool = True  # the sum is the expected one, or none is known


def write_answers(path: pathlib.Path | str, answers: Iterable[Answer]) -> None:
    """JSON lines, in the order of the answers."""
    with pathlib.Path(path).open("w") as out:
        for answer in answers:
            out.write(json.dumps(asdict(answer)) + "\n")


def read_answers(path: pathlib.Path | str) -> list[Answer]:
    with pathlib.Path(path).open() as lines:
        return [Answer(**json.loads(line)) for line in lines]
