"""A program's functions as the callbacks of the C interface.

Its maker keeps it for as long as it may be called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gmb import _native
from gmb._answers import quota_from
from gmb._types import Quota


def budget_changed(told: Callable[[Quota], None]) -> Any:
    return _native.BudgetCallback(lambda quota, _: told(quota_from(quota.contents)))


def draining(told: Callable[[float], None]) -> Any:
    return _native.DrainingCallback(lambda remaining_ms, _: told(remaining_ms / 1000))


def trim(told: Callable[[str, int, float], None]) -> Any:
    return _native.TrimCallback(
        lambda device, nbytes, within_ms, _: told(
            device.decode(errors="replace"), nbytes, within_ms / 1000
        )
    )


def waiting(told: Callable[[int], None]) -> Any:
    return _native.WaitingCallback(lambda ahead, _: told(ahead))
