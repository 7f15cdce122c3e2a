"""When torch lets MemPools go.

A MemPool that is destroyed gives its unused segments back, and torch ends the process if
any thread allocates to a pool, or captures a graph, at that moment. So they are kept until
nobody does.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import torch

from gmb import _segments


class Disposal:
    """Counts who allocates to pools or captures, and destroys pools in between."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._condemned: list[torch.cuda.MemPool] = []
        self._begin: Any = None
        self._end: Any = None

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """While the calling thread allocates to a pool, or looks at one."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """use() in two calls, the second of which is leave()."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            self._destroy_if_quiet()

    def dispose(self, mem_pools: dict[int, torch.cuda.MemPool]) -> None:
        """Nobody will use them any more, but their tensors may live on. Empties the dict."""
        with self._lock:
            while mem_pools:
                self._condemned.append(mem_pools.popitem()[1])
            self._destroy_if_quiet()

    def _destroy_if_quiet(self) -> None:
        if self._users == 0:
            # Under the lock: nobody begins meanwhile.
            self._condemned.clear()

    # --- Captures that the program begins by itself.

    def install(self) -> None:
        graphs = torch.cuda.CUDAGraph
        self._begin, self._end = graphs.capture_begin, graphs.capture_end
        disposal, begin, end = self, self._begin, self._end

        def capture_begin(graph: torch.cuda.CUDAGraph, *args: Any, **kwargs: Any) -> None:
            disposal.enter()
            _segments.lib.gmb_torch_begin_capture()
            try:
                begin(graph, *args, **kwargs)
            except BaseException:
                _segments.lib.gmb_torch_end_capture()
                disposal.leave()
                raise

        def capture_end(graph: torch.cuda.CUDAGraph) -> None:
            try:
                end(graph)
            finally:
                _segments.lib.gmb_torch_end_capture()
                disposal.leave()

        graphs.capture_begin = capture_begin  # type: ignore
        graphs.capture_end = capture_end  # type: ignore

    def remove(self) -> None:
        """Pools that could not be destroyed by now stay until the process has ended."""
        torch.cuda.CUDAGraph.capture_begin = self._begin  # type: ignore
        torch.cuda.CUDAGraph.capture_end = self._end  # type: ignore
        with self._lock:
            self._destroy_if_quiet()
            for mem_pool in self._condemned:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(mem_pool))
