"""Programs that are all warm and take turns: one works, the others wait in a read.

A worker is torch_worker.py. It is told what to do by a line of JSON on its input and answers
by one on its output, so that rounds of different programs alternate as closely as one likes.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

_WORKER = pathlib.Path(__file__).with_name("torch_worker.py")


class Worker:
    """One program. The lines of its standard error go to a file."""

    def __init__(self, name: str, kind: str, prefix: Sequence[str], log: pathlib.Path) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, str(_WORKER), kind],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )

    def tell(self, do: str, **what: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._died()

    def answer(self) -> dict[str, Any]:
        """Its answer to the oldest order."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._died()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            sys.exit(f"{self.name}: {answer['error']}\n(see {self._log})")
        return answer

    def ask(self, do: str, **what: Any) -> dict[str, Any]:
        self.tell(do, **what)
        return self.answer()

    def _died(self) -> None:
        tail = self._log.read_text(errors="replace")[-2000:]
        sys.exit(f"{self.name}: ended with {self._process.wait(timeout=60)}\n{tail}")

    def end(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def launch(
    kinds: dict[str, str], run_prefix: Sequence[str], log: pathlib.Path
) -> Iterator[list[Worker]]:
    """A worker for each name of that kind; `run` is started behind `run_prefix`."""
    workers: list[Worker] = []
    try:
        for name, kind in kinds.items():
            workers.append(Worker(name, kind, run_prefix if kind == "run" else [], log))
        for worker in workers:
            worker.answer()  # it is ready
        yield workers
    finally:
        for worker in workers:
            worker.end()


def all_at_once(workers: Sequence[Worker], do: str, **what: Any) -> list[dict[str, Any]]:
    for worker in workers:
        worker.tell(do, **what)
    return [worker.answer() for worker in workers]


def in_turn(
    workers: Sequence[Worker], turn: int, do: str, **what: Any
) -> list[dict[str, Any]]:
    """One after the other, every second turn in the reverse order; answers by worker."""
    order = range(len(workers)) if turn % 2 == 0 else range(len(workers) - 1, -1, -1)
    answers = {i: workers[i].ask(do, **what) for i in order}
    return [answers[i] for i in range(len(workers))]


def core_for_all() -> int:
    """The core whose turn it is: the same for all, since cores differ."""
    return max(os.sched_getaffinity(0))


def cores_for_all(count: int) -> list[int]:
    """As many, or all that there are."""
    return sorted(os.sched_getaffinity(0))[-count:]
