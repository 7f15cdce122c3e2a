"""Scopes of the gate: where leases are used."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from gmb._open_session import closed_error

if TYPE_CHECKING:
    from gmb._client import Client

P = ParamSpec("P")
R = TypeVar("R")

_default: Client | None = None


class _Entered(threading.local):
    """The clients whose scopes this thread is in, innermost last."""

    def __init__(self) -> None:
        self.clients: list[Client] = []


_entered = _Entered()


def offer_default(client: Client) -> None:
    """Takes it unless there is one that is open."""
    global _default
    if _default is None or _default.closed:
        _default = client


def forget_default(client: Client) -> None:
    global _default
    if _default is client:
        _default = None


def default_client() -> Client:
    """The client of gmb.active() and gmb.torch: the one that offer_default() took."""
    if _default is None:
        raise closed_error("gmb: not connected; call gmb.connect() or gmb.torch.enable() first")
    return _default


class Scope:
    """A scope of the calling thread, as a context manager or a decorator.

    One object may be entered any number of times and by any number of threads.
    """

    def __init__(
        self, client: Client | None = None, *, wait: float | None = 30.0, capture: bool = False
    ) -> None:
        self._client = client
        self._wait = wait
        self._capture = capture

    def __enter__(self) -> Scope:
        self.enter_of(self._client or default_client())
        return self

    def enter_of(self, client: Client) -> None:
        client.enter(self._wait, capture=self._capture)
        _entered.clients.append(client)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not _entered.clients:
            raise RuntimeError("gmb: a scope ends on the thread that entered it")
        _entered.clients.pop().leave()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                "gmb: a scope would stay open while the coroutine waits; enter it inside, "
                "around what submits work"
            )
        if inspect.isgeneratorfunction(function):
            raise TypeError(
                "gmb: a scope would stay open between the generator's items; enter it inside, "
                "around what submits work"
            )

        @functools.wraps(function)
        def in_scope(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return in_scope


def active(
    client: Client | None = None, *, wait: float | None = 30.0, capture: bool = False
) -> Scope:
    """Where leases are used: `with gmb.active():`, or `@gmb.active()` on a function.

    While the memory is away it waits for at most `wait` seconds (None: as long as
    the broker allows) until it is back, and raises DeadlineExceededError then.
    Enter it around what submits work, not around what waits for others; the GPU
    need not be waited for. `capture`: a CUDA stream is captured in it. Without
    `client` it is the one that was connected first.
    """
    return Scope(client, wait=wait, capture=capture)
