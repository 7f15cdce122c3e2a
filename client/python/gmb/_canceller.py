"""Withdraws requests."""

from __future__ import annotations

import ctypes
import weakref

from gmb._native import check, lib
from gmb._owner import Owner


class Canceller(Owner):
    """Withdraws the requests that it is given to, from any thread."""

    _instead = "all threads may use the one canceller, and further requests a new one"

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(lib.gmb_canceller_create(ctypes.byref(handle)))
        self._handle = handle.value
        weakref.finalize(self, lib.gmb_canceller_free, self._handle).atexit = False

    def cancel(self) -> None:
        """Every request that has it, now and in the future, ends with CancelledError."""
        lib.gmb_canceller_cancel(self._handle)
