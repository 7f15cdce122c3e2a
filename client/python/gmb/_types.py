"""Devices, quotas, and how contents are treated."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Contents(enum.IntEnum):
    """How a lease's contents are treated when its bytes are needed elsewhere."""

    PRESERVE = 0  # kept, in host memory if need be
    DISCARD = 1  # may be lost
    RESIDENT = 2  # never moved (NCCL, RDMA, peers)


class DeviceKind(enum.IntEnum):
    UNKNOWN = 0  # of a newer broker
    VMM = 1
    IPC = 2
    HOST = 3  # shared host memory


@dataclass(frozen=True)
class Device:
    """A device pool that the broker offers."""

    uuid: str
    name: str
    kind: DeviceKind
    granularity_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Quota:
    """The tenant's quota on one device pool, and its use."""

    device: str
    guarantee_bytes: int
    limit_bytes: int
    leased_bytes: int
    unreturned_bytes: int
    pool_bytes: int
    obtainable_bytes: int
    over_limit_bytes: int
    weight: float
    evicted_bytes: int
