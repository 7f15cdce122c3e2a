"""One of the programs that torch_bench.py has take turns; see turns.py.

    torch_worker.py native|run|leased

`native` and `run` are plain PyTorch, the latter started under `gmb run`. `leased` has its
memory from gmb.torch, with a scope for each request.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import json
import os
import sys
import threading
import time
from typing import Any

import torch
from torch_models import make_input, make_model

ON = "cuda" if torch.cuda.is_available() else "cpu"  # the latter to try this program


class Plain:
    """PyTorch by itself."""

    def __init__(self) -> None:
        self.loading = contextlib.nullcontext
        self.request = contextlib.nullcontext()
        self.capturing = torch.cuda.graph

    def give_back(self) -> None:
        torch.cuda.empty_cache()

    def held_bytes(self) -> int:
        return torch.cuda.memory_reserved() if ON == "cuda" else 0


class Leased:
    """PyTorch with gmb.torch."""

    def __init__(self) -> None:
        import gmb.torch

        gmb.torch.enable(tenant=os.environ.get("GMB_TENANT"))
        self.loading = gmb.torch.weights
        self.request = gmb.torch.active()
        self.capturing = gmb.torch.graph
        self.give_back = gmb.torch.trim
        self.held_bytes = lambda: gmb.torch.stats().leased_bytes


def synchronize() -> None:
    if ON == "cuda":
        torch.cuda.synchronize()


def seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    synchronize()
    return time.perf_counter() - began


class Bench:
    """The orders that it takes. Answers are what the functions return."""

    def __init__(self, memory: Plain | Leased) -> None:
        self._memory = memory
        self._model: Any = None
        self._input: Any = None
        self._steps: dict[str, Any] = {}
        self._events: Any = None
        self._blocks: list[torch.Tensor] = []
        self._cores = os.sched_getaffinity(0)
        self._crew: Crew | None = None

    # --- Throughput.

    def load(self, width: int, layers: int, rows: int, length: int) -> dict[str, Any]:
        """Another model, and what is asked of it."""
        self._steps.clear()
        self.dismiss()
        self._model = self._input = None
        torch._dynamo.reset()
        gc.unfreeze()
        gc.collect()
        self._memory.give_back()
        with self._memory.loading():
            self._model = make_model(width, layers).to(ON)
        with self._memory.request:
            self._input = make_input(rows, length, width).to(ON)
        return {"parameters": sum(p.numel() for p in self._model.parameters())}

    def prepare(self, mode: str, core: int) -> dict[str, Any]:
        """One way of running it, warm; from then on this thread stays on that core."""
        # Threads and programs that it starts stay where it is.
        os.sched_setaffinity(0, self._cores)
        step = self._steps[mode] = self._graph() if mode == "graph" else self._function(mode)
        began = time.perf_counter()
        step()
        synchronize()
        first = time.perf_counter() - began
        for _ in range(5):
            step()
        synchronize()
        gc.collect()
        gc.freeze()  # collecting does not go through all of torch again
        os.sched_setaffinity(0, {core})
        return {"first_s": first}

    def _function(self, mode: str) -> Any:
        model, x, request = self._model, self._input, self._memory.request
        if mode == "compiled":
            model = torch.compile(model)

        def step() -> None:
            with request:
                model(x)

        return step

    def _graph(self) -> Any:
        self._function("eager")()  # what libraries make once
        synchronize()
        captured, request = torch.cuda.CUDAGraph(), self._memory.request
        with self._memory.capturing(captured):
            self._model(self._input)

        def step() -> None:
            with request:
                captured.replay()

        return step

    def time(self, mode: str, warm: int, steps: int) -> dict[str, Any]:
        """Seconds a step: by the clock until the GPU has done it, and by the GPU's events."""
        step = self._steps[mode]
        for _ in range(warm):
            step()
        synchronize()
        if ON != "cuda":
            wall = seconds(lambda: [step() for _ in range(steps)]) / steps
            return {"wall_s": wall, "gpu_s": wall}
        if self._events is None:
            self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        began = time.perf_counter()
        self._events[0].record()
        for _ in range(steps):
            step()
        self._events[1].record()
        synchronize()
        wall = (time.perf_counter() - began) / steps
        return {"wall_s": wall, "gpu_s": self._events[0].elapsed_time(self._events[1]) / 1e3 / steps}

    # --- Throughput of several threads.

    def gather(self, mode: str, threads: int, cores: list[int]) -> dict[str, Any]:
        """Threads that each run the model in one way, on a stream of their own; all are warm."""
        self.dismiss()
        os.sched_setaffinity(0, self._cores)  # of this thread, and so of those that it starts
        model = torch.compile(self._model) if mode == "compiled" else self._model
        began = time.perf_counter()
        model(self._input)  # compiled once, by one thread
        synchronize()
        first = time.perf_counter() - began
        self._crew = Crew(model, self._input, threads, mode == "graph", cores)
        self._crew.run(0.2)
        gc.collect()
        gc.freeze()
        return {"first_s": first}

    def run(self, seconds: float) -> dict[str, Any]:
        """Seconds a step of all of them together: by the clock, over about so many seconds."""
        assert self._crew is not None
        return self._crew.run(seconds)

    def dismiss(self) -> dict[str, Any]:
        if self._crew is not None:
            self._crew.end()
        self._crew = None
        return {}

    # --- Giving back, and growing again.

    def regrow(self, total: int, block: int) -> dict[str, Any]:
        """Seconds for each step of what a server does that gives its cache back.

        A working set is allocated, used, freed, given back, allocated again, and once more
        from the cache.
        """
        self._memory.give_back()
        synchronize()
        count = total // block
        took = {"grow_s": seconds(lambda: self._grow(count, block))}
        with self._memory.request:
            for tensor in self._blocks:
                tensor.fill_(1)
        synchronize()
        took["free_s"] = seconds(self._blocks.clear)
        took["give_back_s"] = seconds(self._memory.give_back)
        took["held_bytes"] = self._memory.held_bytes()
        took["regrow_s"] = seconds(lambda: self._grow(count, block))
        self._blocks.clear()
        took["cached_s"] = seconds(lambda: self._grow(count, block))
        self._blocks.clear()
        self._memory.give_back()
        synchronize()
        return took

    def _grow(self, count: int, block: int) -> None:
        with self._memory.request:
            self._blocks.extend(
                torch.empty(block, dtype=torch.uint8, device=ON) for _ in range(count)
            )

    def request(self) -> dict[str, Any]:
        """Seconds for a request from the cache, giving back, and the same request after it."""
        step = self._steps["eager"]
        step()
        synchronize()
        took = {"cached_s": seconds(step), "give_back_s": seconds(self._memory.give_back)}
        took["held_bytes"] = self._memory.held_bytes()
        took["regrow_s"] = seconds(step)
        return took


# All graphs that crews have captured. The end of a graph takes cuBLAS's workspace from all
# others that were captured on its stream, and streams are used again (pytorch issue 193402).
_graphs: list[Any] = []


class Crew:
    """Threads that run a model side by side, each with an input and a stream of its own."""

    # Steps that are in a stream at once: enough that it never runs dry.
    _AHEAD = 8

    def __init__(
        self, model: Any, like: torch.Tensor, threads: int, as_graph: bool, cores: list[int]
    ) -> None:
        self._threads = threads
        self._model, self._like = model, like
        self._barrier = threading.Barrier(threads)
        self._capturing = threading.Lock()
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        self._own = threading.local()
        self._all(lambda: self._begin(set(cores)))
        if as_graph and ON == "cuda":
            self._all(self._capture)

    def run(self, seconds: float) -> dict[str, Any]:
        found = self._all(lambda: self._work(seconds))
        steps = sum(count for count, _ in found)
        wall = max(took for _, took in found)
        return {"wall_s": wall / steps, "steps": steps, "took_s": wall}

    def end(self) -> None:
        self._all(lambda: self._own.__dict__.clear())
        self._pool.shutdown()

    def _all(self, work: Any) -> list[Any]:
        """In every thread once: none of them ends before all have begun."""

        def one() -> Any:
            self._barrier.wait(120)
            return work()

        jobs = [self._pool.submit(one) for _ in range(self._threads)]
        return [job.result() for job in jobs]

    def _begin(self, cores: set[int]) -> None:
        os.sched_setaffinity(0, cores)
        own, model = self._own, self._model
        with torch.inference_mode():
            x = self._like.clone()
        own.step, own.stream = lambda: model(x), None
        if ON == "cuda":
            torch.cuda.synchronize()
            own.stream = torch.cuda.Stream()
        self._steps(3)  # what libraries make once a thread

    def _capture(self) -> None:
        # One after the other: the device must not be waited for meanwhile.
        own = self._own
        with self._capturing, torch.inference_mode():
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=own.stream, capture_error_mode="thread_local"):
                own.step()
        own.step = graph.replay
        _graphs.append(graph)

    def _steps(self, count: int) -> None:
        """On this thread's stream, in the mode that each thread has for itself, to the end."""
        own = self._own
        with torch.inference_mode(), torch.cuda.stream(own.stream):
            for _ in range(count):
                own.step()
        if own.stream is not None:
            own.stream.synchronize()

    def _work(self, seconds: float) -> tuple[int, float]:
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            self._steps(self._AHEAD)
            steps += self._AHEAD
        return steps, time.perf_counter() - began


def main() -> None:
    # Output of libraries is no answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    kind = sys.argv[1]

    def say(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    try:
        bench = Bench(Leased() if kind == "leased" else Plain())
        with torch.inference_mode():
            torch.ones(1, device=ON)
            say({"ready": True})
            for line in sys.stdin:
                order = json.loads(line)
                say(getattr(bench, order.pop("do"))(**order))
    except BaseException as error:
        say({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
