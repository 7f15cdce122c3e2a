"""Shared leases as torch's storages."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch

from gmb import _segments
from gmb._lease import Lease
from gmb._owner import Owner


class SharedSegment(Owner):
    """A shared lease, given back when the last of its tensors is gone."""

    def __init__(self, lease: Lease, device: int) -> None:
        self._address = lease.address
        self._device = torch.device("cuda", device)
        _segments.adopt(lease, device)
        # A process that ends gives everything back.
        weakref.finalize(self, _segments.free, self._address).atexit = False

    def tensor(
        self, dtype: torch.dtype, shape: tuple[int, ...], offset: int, nbytes: int
    ) -> torch.Tensor:
        """In a scope: torch asks the driver about the address."""
        made = torch.empty(0, dtype=dtype, device=self._device)
        if nbytes == 0:
            return made.reshape(shape)
        part = as_tensor(self, self._address + offset, nbytes, self._device)
        # A storage of its own: libraries take tensors with one storage for one tensor.
        return made.set_(part.untyped_storage(), 0, shape, _strides(shape))


class SharedSegments:
    """Those of the session, by name: a session attaches to a lease once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # held while one is made
        self.by_name: weakref.WeakValueDictionary[str, SharedSegment] = (
            weakref.WeakValueDictionary()
        )


class _Bytes:
    """Kept by torch for as long as it has the storage."""

    def __init__(self, owner: object, address: int, nbytes: int) -> None:
        self._owner = owner
        # torch takes only what is said to be writable.
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def as_tensor(
    owner: object, address: int, nbytes: int, device: torch.device
) -> torch.Tensor:
    """Bytes of the device, whose owner lives as long as the tensor's storage."""
    return torch.as_tensor(_Bytes(owner, address, nbytes), device=device)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for count in reversed(shape):
        strides.append(step)
        step *= count
    return tuple(reversed(strides))
