"""Devices, quotas, and how contents are treated."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


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
    """What the tenant has and may have on one device pool."""

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


def quota_from(struct: Any) -> Quota:
    values = {name: getattr(struct, name) for name, _ in struct._fields_}
    values["device"] = struct.device.decode()
    return Quota(**values)


def device_from(struct: Any) -> Device:
    kind = DeviceKind(struct.kind) if struct.kind in list(DeviceKind) else DeviceKind.UNKNOWN
    return Device(
        uuid=struct.uuid.decode(),
        name=struct.name.decode(errors="replace"),
        kind=kind,
        granularity_bytes=struct.granularity_bytes,
        total_bytes=struct.total_bytes,
    )
