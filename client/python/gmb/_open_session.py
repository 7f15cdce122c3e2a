"""Holds a session open."""

from __future__ import annotations

import threading

from gmb._errors import Code, FailedPreconditionError, ForkGuard, UnavailableError
from gmb._owner import Owner


def closed_error(message: str) -> UnavailableError:
    return UnavailableError(message, code=Code.UNAVAILABLE)


class OpenSession(Owner):
    """The handle of a session, and the calls and scopes that are in it.

    `with` it a call has the handle, which stays good until the call is over. In a forked
    child it refuses calls and scopes; whoever closes asks `guard` first. Thread-safe.
    """

    def __init__(self, handle: int) -> None:
        self.guard = ForkGuard()
        self._handle: int | None = handle
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._callers: list[int] = []  # the thread of each call
        self._scopes = 0

    @property
    def handle(self) -> int | None:
        """None once it is closed."""
        return self._handle

    @property
    def scopes(self) -> int:
        return self._scopes

    def __enter__(self) -> int:
        self.guard.check()
        with self._lock:
            handle = self._checked()
            self._callers.append(threading.get_ident())
            return handle

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._callers.remove(threading.get_ident())
            if self._handle is None and not self._callers:  # close() waits
                self._idle.notify_all()

    def begin_scope(self) -> int:
        self.guard.check()
        with self._lock:
            handle = self._checked()
            self._scopes += 1
            return handle

    def end_scope(self) -> None:
        with self._lock:
            self._scopes -= 1

    def _checked(self) -> int:
        if self._handle is None:
            raise closed_error("gmb: the client is closed; connect anew")
        return self._handle

    def close(self) -> int | None:
        """Waits for the calls, and is nobody's then: what to hang up, None if it was done."""
        with self._lock:
            if self._handle is None:
                return None
            if self._scopes:
                raise FailedPreconditionError(
                    "gmb: scopes of this session are in; leave them before closing",
                    code=Code.FAILED_PRECONDITION,
                )
            if threading.get_ident() in self._callers:  # it would wait for itself
                raise FailedPreconditionError(
                    "gmb: close() in the middle of a call of the same thread, by a callback or "
                    "a signal handler; close when that call is over",
                    code=Code.FAILED_PRECONDITION,
                )
            handle, self._handle = self._handle, None
            while self._callers:
                self._idle.wait()
            return handle

    def close_unless_in_use(self) -> int | None:
        """The same, without waiting; also None when it is in use, and stays open."""
        with self._lock:
            if self._callers or self._scopes:
                return None
            handle, self._handle = self._handle, None
            return handle

    def abandon(self) -> int | None:
        """The same in a destructor, where nobody else has it: without its lock."""
        handle, self._handle = self._handle, None
        return handle
