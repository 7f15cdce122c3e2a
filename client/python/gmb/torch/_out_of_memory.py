"""torch.OutOfMemoryError says why the broker made no segment."""

from __future__ import annotations

import threading
from typing import Any

import torch

from gmb import _segments
from gmb._errors import Error


class _Last(threading.local):
    error: Error | None = None


_last = _Last()


def oom_reason() -> Error | None:
    """Why the broker refused memory to the calling thread's last torch.OutOfMemoryError.

    None when the broker had no part in it. `str()` of torch's error has it too.
    """
    return _last.error


def _describe(self: BaseException, *args: Any) -> None:
    # torch makes the error on the thread whose allocation failed, where the failure is.
    failure = _segments.take_failure()
    _last.error = None if failure is None else failure.as_error()
    if _last.error is not None and args and isinstance(args[0], str):
        args = (f"{_last.error}\n{args[0]}", *args[1:])
    RuntimeError.__init__(self, *args)


def install() -> None:
    torch.OutOfMemoryError.__init__ = _describe  # type: ignore[method-assign]


def remove() -> None:
    if torch.OutOfMemoryError.__dict__.get("__init__") is _describe:
        del torch.OutOfMemoryError.__init__
