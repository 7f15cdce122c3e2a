"""Leased memory."""

from __future__ import annotations

import ctypes
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gmb._native import byte_count, check, lib
from gmb._owner import Owner
from gmb._types import Device, DeviceKind

if TYPE_CHECKING:
    from gmb._client import Client


class Lease(Owner):
    """Leased device memory: one contiguous range. Made by Client.acquire.

    A context manager that releases it. Released as well when it is garbage
    collected. It may outlive its client. `view`, `release` and `seal` are for
    one thread at a time.

    GPU leases have the CUDA array interface, so that `cupy.asarray(lease)` or
    `torch.as_tensor(lease, device="cuda")` is an array of its bytes. It says that
    attached leases are read-only, which torch refuses: gmb.torch.load_shared is for
    those. Leases of `host` devices have `view()`.
    """

    _instead = (
        "pass the lease itself on; another process attaches by name to one with share_as, and "
        "read() gives its bytes"
    )

    def __init__(self, owned: ctypes.c_void_p, client: Client) -> None:
        # The first to drop `owned` does it for all: an interrupt may come anywhere here.
        handle = owned.value
        assert handle is not None
        self._handle: int | None = handle
        self._client = client
        self._device = client.device_of(lib.gmb_lease_device(handle).decode())
        self._address: int = lib.gmb_lease_data(handle)
        self._size: int = lib.gmb_lease_size_bytes(handle)
        self._id: int = lib.gmb_lease_id(handle)
        self._attached = bool(lib.gmb_lease_attached(handle))
        self._view: weakref.ref[Any] | None = None
        self._release = weakref.finalize(self, drop_handle, owned)
        # A process that ends gives everything back: nothing to do then.
        self._release.atexit = False

    @property
    def address(self) -> int:
        """Where it begins: a device address (a host address for `host`). Stays as it is."""
        return self._address

    @property
    def size_bytes(self) -> int:
        """As leased: what was asked for, rounded up to the device's granularity."""
        return self._size

    @property
    def id(self) -> int:
        """The broker's name for it, as operators see it."""
        return self._id

    @property
    def device(self) -> Device:
        return self._device

    @property
    def attached(self) -> bool:
        """Another session's, to be read: see Client.attach."""
        return self._attached

    @property
    def released(self) -> bool:
        return self._handle is None

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        state = ", released" if self.released else ""
        return f"<gmb.Lease {self._id}: {self._size} bytes of {self._device.uuid}{state}>"

    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("gmb: the lease is released")
        return self._handle

    def _range(self, offset: int, count: int | None) -> tuple[int, int]:
        if count is None:
            count = max(0, self._size - offset)
        return byte_count(offset, "an offset"), byte_count(count, "a count")

    def read(self, offset: int = 0, count: int | None = None) -> bytes:
        """Copies bytes to the host: for tools and tests, not for speed."""
        offset, count = self._range(offset, count)
        # The library refuses a count that is too large; make no room for it.
        buffer = ctypes.create_string_buffer(min(count, self._size))
        check(lib.gmb_lease_copy_to_host(self._open(), buffer, offset, count))
        return buffer.raw

    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Copies bytes to the device: for tools and tests, not for speed."""
        with memoryview(data) as given:
            raw = bytes(given)
        offset, count = self._range(offset, len(raw))
        check(lib.gmb_lease_copy_from_host(self._open(), offset, raw, count))

    def fill(self, value: int, offset: int = 0, count: int | None = None) -> None:
        """Sets bytes."""
        offset, count = self._range(offset, count)
        if not 0 <= value <= 255:
            raise ValueError("gmb: a byte is 0 to 255")
        check(lib.gmb_lease_fill(self._open(), offset, value, count))

    def view(self) -> memoryview:
        """The memory itself, of a `host` device; usable inside scopes only.

        Read-only when the lease was attached.

        The lease cannot be released while the view, or anything made of it, is
        there: `view.release()` first.
        """
        self._open()
        if self._device.kind != DeviceKind.HOST:
            raise TypeError(
                f"gmb: the host cannot touch memory of {self._device.uuid}; use read() and "
                "write(), or the CUDA array interface"
            )
        array = self._view() if self._view else None
        if array is None:
            array = _array_type(self._size).from_address(self._address)
            array.lease = self
            self._view = weakref.ref(array)
        view = memoryview(array).cast("B")
        return view.toreadonly() if self._attached else view

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.released or self._device.kind not in (DeviceKind.VMM, DeviceKind.IPC):
            raise AttributeError("gmb: not a lease of GPU memory")
        return {
            "shape": (self._size,),
            "typestr": "|u1",
            "data": (self._address, self._attached),
            "strides": None,
            "version": 3,
        }

    def seal(self) -> None:
        """Promises not to write any more (weights, say): one copy serves for ever.

        A shared lease can be attached to from then on, so what writes it has to be done.
        """
        check(lib.gmb_lease_seal(self._open()))

    def release(self) -> None:
        """Gives it back, waiting for the device and the broker. Twice is allowed."""
        if self._handle is None:
            return
        if self._view and self._view() is not None:
            raise BufferError("gmb: a view of the lease is still there; release() it first")
        handle, self._handle = self._handle, None
        self._release.detach()
        check(lib.gmb_lease_release(handle))

    def _detach(self) -> int:
        """The native lease, whose owner is the caller from now on."""
        handle = self._open()
        self._handle = None
        self._release.detach()
        return handle

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def drop_handle(owned: ctypes.c_void_p) -> None:
    """Releases the native lease that is there, once, without a wait for the broker."""
    handle, owned.value = owned.value, None
    if handle is not None:
        lib.gmb_lease_release_soon(handle)


def _array_type(size: int) -> Any:
    # A class of its own has room for the reference to the lease.
    return type("LeaseBytes", (ctypes.c_uint8 * size,), {})
