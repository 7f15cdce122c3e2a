"""Where a thread's allocations come from."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from gmb import _segments
from gmb._types import Contents
from gmb.torch._disposal import Disposal


class Route:
    """From its making until end() the calling thread allocates from these MemPools.

    Each scope makes and ends one, in the midst of a program's own work: so it is calls
    in a row, not an ExitStack of generators.
    """

    __slots__ = ("_disposal", "_entered")

    def __init__(
        self,
        disposal: Disposal,
        mem_pools: dict[int, torch.cuda.MemPool],
        group: int,
        contents: Contents,
    ) -> None:
        self._disposal = disposal
        self._entered: list[AbstractContextManager[Any]] = []
        disposal.enter()
        try:
            # Backward runs on this thread, and so allocates where it does.
            self._enter(torch.autograd.set_multithreading_enabled(False))
            if group != 0:
                self._enter(_segments.group(group, contents))
            for device, mem_pool in mem_pools.items():
                self._enter(torch.cuda.use_mem_pool(mem_pool, device=device))
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Once, on the thread that made it."""
        if not self._entered:
            self._disposal.leave()
            return
        try:
            self._entered.pop().__exit__(None, None, None)
        finally:
            self.end()

    def _enter(self, manager: AbstractContextManager[Any]) -> None:
        manager.__enter__()
        self._entered.append(manager)
