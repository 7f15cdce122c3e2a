"""Giving cached segments back when others need memory, and saying how much there is."""

from __future__ import annotations

import threading
import time

import torch

from gmb import _segments
from gmb._client import Client
from gmb._errors import Error
from gmb.torch._pools import Router

# Looking takes torch's lock, and Python's: while scopes come and go, no more than this part of
# the time.
_PART_OF_TIME = 0.002
# When no scope has been left for so long, and none is open, it looks sooner: what is cached then
# would be copied to the host if the broker did not know that it can be dropped.
_REST_SECONDS = 0.2
_PART_OF_REST = 0.02
# How soon it notices that a trim was passed by while no scope was left.
_LOOK_SECONDS = 1.0


class Trimmer:
    """The client's trim hook, and a thread that tells the broker what it could give."""

    def __init__(self, client: Client, router: Router, uuids: dict[int, str]) -> None:
        self._client = client
        self._router = router
        self._uuids = uuids
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._said: dict[int, int] = {}
        self._trims = 0
        self._thread = threading.Thread(target=self._run, name="gmb-trimmable", daemon=True)
        self._thread.start()

    def trim(self, device: str = "", nbytes: int = 0, seconds: float = 0.0) -> None:
        """Called on a thread of the library, never while a lease is waited for.

        All that is unused goes: torch has no way to give back a part.
        """
        self._router.release_unused()
        torch.cuda.empty_cache()
        self.changed()

    def changed(self) -> None:
        """A scope has been left: there may be more, or less."""
        if not self._changed.is_set():  # setting it costs more
            self._changed.set()

    def stop(self) -> None:
        self._stop.set()
        self._changed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        looked_at, took = time.monotonic(), 0.0
        while True:
            if not self._changed.wait(_LOOK_SECONDS) and not self._forgotten():
                continue
            if not self._await_rest(looked_at + took / _PART_OF_TIME, took):
                return
            began = time.monotonic()
            try:
                self._report()
            except Error:
                return  # the session is over
            looked_at = time.monotonic()
            took = looked_at - began

    def _await_rest(self, at_last: float, took: float) -> bool:
        """Until no scope is open or left any more, or then. False: it is to stop.

        It sleeps, and is not woken by each scope.
        """
        rest = max(_REST_SECONDS, took / _PART_OF_REST)
        while True:
            self._changed.clear()
            if self._stop.wait(rest):
                return False
            at_rest = not self._changed.is_set() and not self._router.in_use()
            if at_rest or time.monotonic() >= at_last:
                return True

    def _forgotten(self) -> bool:
        """Having asked, the broker forgets what it was told, also where that was passed by."""
        return bool(_segments.totals().trims != self._trims)

    def _report(self) -> None:
        # torch holds the lock that looking takes while it waits for the broker.
        totals = _segments.totals()
        if totals.waiting:
            self.changed()
            return
        if totals.trims != self._trims:
            self._trims = totals.trims
            self._said.clear()
        for device, nbytes in self._router.unused_bytes().items():
            if self._said.get(device) != nbytes:
                self._client.set_trimmable(nbytes, self._uuids[device])
                self._said[device] = nbytes
