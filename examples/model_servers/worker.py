"""The one thread that uses the device: requests wait in its queue, in order.

Memory that a request wants while it is in a scope, it waits for only briefly: others may be
in theirs and wait for what this one holds. Then it leaves, so that its memory can be taken,
and tries again after a while that is not the same for all.
"""

from __future__ import annotations

import dataclasses
import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from model_servers.model import Model, Refused

# Entering an open gate takes microseconds, and up to 1 ms beside a parker that waits for the
# GPU. One that takes longer waited for memory to come back: the package has no other way to tell.
RESTORED_SECONDS = 0.002

# For how long memory is waited for inside a scope, and how often a request tries.
WAIT_IN_SCOPE_SECONDS = 1.0
_ATTEMPTS = 5
# Longer than it takes to park: what was held meanwhile can be taken.
_BACK_OFF_SECONDS = (0.1, 0.4)


@dataclass(frozen=True)
class Done:
    """How a request went."""

    sum: str
    met_evicted: bool
    wait_ms: float
    run_ms: float
    queue_ms: float = 0.0  # it stood behind others
    began_at: float = 0.0  # the Unix time at which its first attempt began
    retried_ms: float = 0.0  # from there to the beginning of the last one


class Worker:
    """Runs a model's calls, one after the other."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._queue: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._queue = queue.SimpleQueue()
        self._restored_at = 0.0
        self._chance = random.Random()
        self.requests = 0
        self.refused = 0
        self._thread = threading.Thread(target=self._run, name="worker")
        self._thread.start()

    def call(self, work: Callable[[], Any]) -> Any:
        """Runs it on the worker's thread, waits, and raises what it raises."""
        future: Future[Any] = Future()
        self._queue.put((work, future))
        return future.result()

    def infer(self, batch: int) -> Done:
        """From any thread."""
        arrived = time.monotonic()
        done: Done = self.call(lambda: self._infer(batch, arrived))
        return done

    def waiting(self) -> int:
        """Calls that stand in the queue."""
        return self._queue.qsize()

    def stop(self) -> None:
        """After what is queued."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future = item
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del work, future, item  # nothing may keep tensors alive while it waits

    def _infer(self, batch: int, arrived: float) -> Done:
        self.requests += 1
        began, began_at = time.monotonic(), time.time()
        for attempt in range(1, _ATTEMPTS + 1):
            again = time.monotonic()
            try:
                return dataclasses.replace(
                    self._attempt(batch, arrived),
                    queue_ms=round((began - arrived) * 1000, 3),
                    began_at=began_at,
                    retried_ms=round((again - began) * 1000, 3) if attempt > 1 else 0.0,
                )
            except Refused as error:
                if attempt == _ATTEMPTS or error.final:
                    self.refused += 1
                    raise
            time.sleep(self._chance.uniform(*_BACK_OFF_SECONDS))
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, batch: int, arrived: float) -> Done:
        began = time.monotonic()
        with self._model.active():
            entered = time.monotonic()
            if entered - began > RESTORED_SECONDS:
                self._restored_at = entered
            total = self._model.infer(batch)
            ended = time.monotonic()
        return Done(
            sum=total,
            # Its own restore, or that of a request before it, for which it stood in the queue.
            met_evicted=arrived < self._restored_at,
            wait_ms=round((entered - began) * 1000, 3),
            run_ms=round((ended - entered) * 1000, 3),
        )
