"""Open-loop replay: a request is sent when it is due, whether earlier ones are answered or not.

So a server that is slow is asked no less, and what waits behind it counts: latency begins
when the request was due.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from load.answer import Answer
from load.http_client import HttpClient
from load.trace import Request, Trace

# The expected sums by (model, batch).
Expected = Mapping[tuple[str, int], str]


@dataclass(frozen=True)
class Target:
    """Where a model is served."""

    host: str
    port: int


class _Replay:
    def __init__(
        self, targets: Mapping[str, Target], expected: Expected, answer_within: float
    ) -> None:
        self._clients = {name: HttpClient(t.host, t.port) for name, t in targets.items()}
        self._expected = expected
        self._answer_within = answer_within
        self._start = 0.0
        self.answers: list[Answer] = []

    async def run(self, trace: Trace) -> None:
        for name in trace.models():
            await self._clients[name].connect_ahead()
        self._start = time.monotonic()
        under_way = set()
        for request in trace.requests:
            due = self._start + request.time_ms / 1000
            if (early := due - time.monotonic()) > 0:
                await asyncio.sleep(early)
            task = asyncio.create_task(self._ask(request, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way)
        for client in self._clients.values():
            client.close()

    async def _ask(self, request: Request, due: float) -> None:
        sent, sent_at = time.monotonic(), time.time()
        status = 0
        said: dict[str, Any] = {}
        try:
            client = self._clients[request.model]
            post = client.post("/infer", {"batch": request.batch})
            status, said = await asyncio.wait_for(post, self._answer_within)
        except asyncio.TimeoutError:
            said = {"error": f"no answer within {self._answer_within:g} s"}
        except (OSError, EOFError, ValueError) as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        self.answers.append(self._judge(request, due, sent, status, said, sent_at))

    def _judge(
        self,
        request: Request,
        due: float,
        sent: float,
        status: int,
        said: dict[str, Any],
        sent_at: float,
    ) -> Answer:
        answered = time.monotonic()
        ok = status == 200
        given = str(said.get("sum", ""))
        expected = self._expected.get((request.model, request.batch))
        return Answer(
            model=request.model,
            batch=request.batch,
            due_ms=request.time_ms,
            late_ms=round((sent - due) * 1000, 3),
            latency_ms=round((answered - due) * 1000, 3),
            ok=ok,
            error="" if ok else str(said.get("error", f"status {status}")),
            sum=given,
            met_evicted=bool(said.get("met_evicted", False)),
            wait_ms=float(said.get("wait_ms", 0.0)),
            run_ms=float(said.get("run_ms", 0.0)),
            sent_at=sent_at,
            queue_ms=float(said.get("queue_ms", 0.0)),
            began_at=float(said.get("began_at", 0.0)),
            retried_ms=float(said.get("retried_ms", 0.0)),
            right=not ok or expected is None or expected == given,
        )


def replay(
    trace: Trace,
    targets: Mapping[str, Target],
    expected: Expected | None = None,
    answer_within: float = 60.0,
) -> list[Answer]:
    """One answer for each request, in the order in which they came.

    `targets` has every model of the trace. An answer that is not there after
    `answer_within` seconds counts as refused.
    """
    missing = set(trace.models()) - set(targets)
    if missing:
        raise ValueError(f"no server for {', '.join(sorted(missing))}")
    run = _Replay(targets, expected or {}, answer_within)
    asyncio.run(run.run(trace))
    return run.answers
