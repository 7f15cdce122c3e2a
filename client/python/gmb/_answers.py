"""Facts of a session, from the structs and texts of the C interface."""

from __future__ import annotations

import ctypes
from typing import Any

from gmb import _native
from gmb._native import check, lib
from gmb._types import Device, DeviceKind, Quota


def devices_of(client: int | None) -> tuple[Device, ...]:
    count = ctypes.c_size_t()
    size = ctypes.sizeof(_native.DeviceStruct)
    check(lib.gmb_client_devices(client, None, size, 0, ctypes.byref(count)))
    structs = (_native.DeviceStruct * count.value)()
    check(lib.gmb_client_devices(client, structs, size, len(structs), ctypes.byref(count)))
    return tuple(_device_from(struct) for struct in structs)


def quotas_of(client: int, capacity: int) -> tuple[Quota, ...]:
    """Asks the broker, for as many as `capacity`."""
    count, size = ctypes.c_size_t(), ctypes.sizeof(_native.QuotaStruct)
    structs = (_native.QuotaStruct * capacity)()
    check(lib.gmb_client_quota(client, structs, size, capacity, ctypes.byref(count)))
    return tuple(quota_from(struct) for struct in structs[: min(count.value, capacity)])


def warnings_of(client: int) -> tuple[str, ...]:
    texts: list[str] = []
    while (text := lib.gmb_client_warning(client, len(texts))) is not None:
        texts.append(text.decode(errors="replace"))
    return tuple(texts)


def quota_from(struct: Any) -> Quota:
    values = {name: getattr(struct, name) for name, _ in struct._fields_}
    values["device"] = struct.device.decode()
    return Quota(**values)


def _device_from(struct: Any) -> Device:
    kind = DeviceKind(struct.kind) if struct.kind in list(DeviceKind) else DeviceKind.UNKNOWN
    return Device(
        uuid=struct.uuid.decode(),
        name=struct.name.decode(errors="replace"),
        kind=kind,
        granularity_bytes=struct.granularity_bytes,
        total_bytes=struct.total_bytes,
    )
