"""The state that has to be there when all servers have ended: all memory is back, and nothing is left over."""

from __future__ import annotations

import time
from collections.abc import Callable

from conditions import in_gib
from kept_broker import Keeper, KeptBroker
from machine import memory_used
from local_broker import Problem

# The faults that are left, a sentence each.
Look = Callable[[], list[str]]

_GONE = ("sessions", "leases", "handles")
# Of the pool; "returned" waits for its tenant for some seconds.
_POOL_GONE = ("granted", "returned", "scrubbing", "unreturned", "missing", "waiting")
_HOST_GONE = ("reserved", "placed", "held")
# The driver's own, which is not the same at each look.
_DEVICE_SLACK = 32 << 20


def patiently(look: Look, deadline: float) -> list[str]:
    """The faults that are left at the deadline."""
    while True:
        try:
            wrong = look()
        except Problem as error:
            wrong = [str(error)]
        if not wrong or time.monotonic() > deadline:
            return wrong
        time.sleep(0.1)  # between two looks


def broker_has_all(broker: KeptBroker, capacity: int) -> Look:
    def look() -> list[str]:
        status = broker.ask("status")
        pool, host = status["pools"][0], status["host_pool"]
        found = {key: int(status[key]) for key in _GONE}
        found |= {f"{key} bytes": int(pool[f"{key}_bytes"]) for key in _POOL_GONE}
        found |= {f"host pool: {key} bytes": int(host[f"{key}_bytes"]) for key in _HOST_GONE}
        wrong = [f"{name}: {count}, not 0" for name, count in found.items() if count]
        now, free = int(pool["capacity_bytes"]), int(pool["ready_bytes"]) + int(pool["float_bytes"])
        if now != capacity or free != capacity:
            wrong.append(f"the pool has {now} bytes, {free} of them free, of {capacity} at first")
        return wrong + [pool["problem"]] if pool["problem"] else wrong

    return look


def keeper_has_no_client(keeper: Keeper) -> Look:
    def look() -> list[str]:
        sessions = keeper.status()["sessions"]
        return [f"the keeper has {sessions} sessions"] if sessions else []

    return look


def keeper_has_nothing(keeper: Keeper) -> Look:
    """After the broker's end in order."""

    def look() -> list[str]:
        status = keeper.status()
        return [
            f"the keeper has {status[key]} {key}" for key in ("entries", "fds") if status[key] != 0
        ]

    return look


def device_is_free(before: int | None) -> Look:
    """Of a GPU; `before`: the bytes in use then, as memory_used() said."""

    def look() -> list[str]:
        now = memory_used()
        if before is None or now is None:
            return ["nvidia-smi does not say what is in use"]
        if now <= before + _DEVICE_SLACK:
            return []
        return [f"{in_gib(now)} of the device are in use, {in_gib(before)} at first"]

    return look
