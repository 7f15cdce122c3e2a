"""MemPools over the broker, and which of them a thread allocates from."""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import torch

from gmb import _segments
from gmb._owner import Owner
from gmb._types import Contents
from gmb.torch._disposal import Disposal
from gmb.torch._route import Route

_groups = itertools.count(1)


class Pool(Owner):
    """A MemPool on each device, whose segments are leases with the same contents.

    `with pool:` the calling thread allocates from it. One thread at a time.
    """

    def __init__(
        self, router: Router, contents: Contents = Contents.PRESERVE, group: int | None = None
    ) -> None:
        self._router = router
        self.contents = contents
        self.group = next(_groups) if group is None else group
        self._mem_pools = router.make_mem_pools()
        # Not destroyed with this object: see Disposal.
        self._end = weakref.finalize(self, router.disposal.dispose, self._mem_pools)
        self._in_use = threading.Lock()

    @property
    def mem_pools(self) -> dict[int, torch.cuda.MemPool]:
        """torch's pools, by the device's index."""
        return self._mem_pools

    def unused_bytes(self) -> dict[int, int]:
        """By device: what its segments hold in which there is no tensor."""
        with self._router.disposal.use():
            return {device: self._unused_on(device) for device in self._router.devices}

    def _unused_on(self, device: int) -> int:
        mem_pool = self._mem_pools.get(device)
        if mem_pool is None:
            return 0
        segments = mem_pool.snapshot(include_traces=False)  # type: ignore
        return sum(
            segment["total_size"]
            for segment in segments
            if segment["active_size"] == 0 and segment["device"] == device
        )

    def renew(self) -> None:
        """Gives unused segments back: torch does so only for pools that nobody uses again.

        The old pools' tensors stay as they are; new ones come from new pools.
        """
        self._replace(self._router.make_mem_pools())

    def drop(self) -> None:
        """Gives unused segments back for good; further use is an error."""
        self._replace({})

    def _replace(self, mem_pools: dict[int, torch.cuda.MemPool]) -> None:
        end, self._mem_pools = self._end, mem_pools
        self._end = weakref.finalize(self, self._router.disposal.dispose, mem_pools)
        end()

    def route(self) -> Route:
        """The calling thread's allocations come from here until the route has ended."""
        if not self._mem_pools:
            raise RuntimeError("gmb: the pool is closed")
        return Route(self._router.disposal, self._mem_pools, self.group, self.contents)

    def __enter__(self) -> Pool:
        if not self._router.in_scope():
            raise RuntimeError("gmb: a pool is used inside of gmb.torch.active()")
        if not self._in_use.acquire(blocking=False):
            raise RuntimeError("gmb: a pool is for one thread at a time, and not nested")
        try:
            self._router.push(self)
        except BaseException:
            self._in_use.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._router.pop()
        finally:
            self._in_use.release()


class _Routes(threading.local):
    """The pools that a thread allocates from, innermost last, and its route. None: torch's own."""

    def __init__(self) -> None:
        self.pools: list[Pool | None] = []
        self.route: Route | None = None


class Router:
    """Sends the threads' allocations to pools.

    Only one route of a thread is ever known to torch, so that it does not matter which of
    several torch would prefer. Scopes take a pool that no other thread is in: torch lets
    one thread at a time into a pool, and their tensors may live on when they leave it.
    """

    def __init__(self, devices: tuple[int, ...], in_scope: Callable[[], bool]) -> None:
        self.in_scope = in_scope  # whether the calling thread is
        self.disposal = Disposal()
        self._allocator: Any = torch.cuda.memory.CUDAPluggableAllocator(
            _segments.PATH, "gmb_torch_alloc", "gmb_torch_free"
        )
        self._devices = devices
        self._routes = _Routes()
        self._lock = threading.Lock()
        self._idle: list[Pool] = []
        self._busy: list[Pool] = []
        self._stale: set[Pool] = set()  # to be renewed when their scope has left

    @property
    def devices(self) -> tuple[int, ...]:
        return self._devices

    def make_mem_pools(self) -> dict[int, torch.cuda.MemPool]:
        made = {}
        for device in self._devices:
            with torch.cuda.device(device):
                made[device] = torch.cuda.MemPool(self._allocator.allocator())
        return made

    # --- Routes of the calling thread.

    def push(self, pool: Pool | None) -> None:
        routes = self._routes
        routes.pools.append(pool)
        try:
            self._follow(routes)
        except BaseException:
            routes.pools.pop()
            self._follow(routes)
            raise

    def pop(self) -> Pool | None:
        routes = self._routes
        pool = routes.pools.pop()
        self._follow(routes)
        return pool

    @contextlib.contextmanager
    def unrouted(self) -> Iterator[None]:
        """The calling thread allocates as torch does without us."""
        self.push(None)
        try:
            yield
        finally:
            self.pop()

    def _follow(self, routes: _Routes) -> None:
        if routes.route is not None:
            route, routes.route = routes.route, None
            route.end()
        if routes.pools and (pool := routes.pools[-1]) is not None:
            routes.route = pool.route()

    # --- Of scopes: see gmb._client.ScopeHooks.

    def entered(self) -> None:
        with self._lock:
            pool = self._idle.pop() if self._idle else None
            if pool is not None:
                self._busy.append(pool)
        if pool is None:
            pool = Pool(self, group=0)
            with self._lock:
                self._busy.append(pool)
        try:
            self.push(pool)
        except BaseException:
            self._back(pool)
            raise

    def leaving(self) -> None:
        if not self._routes.pools:
            return  # entered before gmb.torch was enabled
        pool = self.pop()
        assert pool is not None
        self._back(pool)

    def _back(self, pool: Pool) -> None:
        """Its scope has left."""
        with self._lock:
            self._busy.remove(pool)
            if pool not in self._stale:
                self._idle.append(pool)
                return
            self._stale.remove(pool)
        pool.renew()
        with self._lock:
            self._idle.append(pool)

    def in_use(self) -> bool:
        """Whether a scope is open."""
        with self._lock:
            return bool(self._busy)

    # --- Giving back.

    def release_unused(self) -> None:
        """Now from the pools that no scope is in, later from the others."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._stale.update(self._busy)
        for pool in idle:
            if any(pool.unused_bytes().values()):
                pool.renew()
        with self._lock:
            self._idle[:0] = idle

    def unused_bytes(self) -> dict[int, int]:
        """By device, of the scopes' pools."""
        with self._lock:
            pools = [*self._idle, *self._busy]
        unused = dict.fromkeys(self._devices, 0)
        for pool in pools:
            for device, nbytes in pool.unused_bytes().items():
                unused[device] += nbytes
        return unused

    def drop(self) -> None:
        with self._lock:
            pools, self._idle = [*self._idle, *self._busy], []
        for pool in pools:
            pool.drop()
