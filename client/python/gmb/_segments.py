"""libgmb_torch.so through ctypes (native/gmb_torch.h). Works without torch."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping
from ctypes import Structure, c_char, c_char_p, c_int32, c_int64, c_ssize_t, c_uint64, c_void_p
from dataclasses import dataclass

from gmb import _callbacks, _native
from gmb._client import Client
from gmb._errors import Error, make_error
from gmb._lease import Lease
from gmb._types import Contents


class Segment(Structure):
    """A lease that torch has as a segment."""

    _fields_ = [
        ("address", c_uint64),
        ("bytes", c_uint64),
        ("group", c_uint64),
        ("device", c_int32),
        ("sealed", c_int32),
    ]


class Totals(Structure):
    _fields_ = [
        ("segments", c_uint64),
        ("bytes", c_uint64),
        ("waiting", c_uint64),
        ("changes", c_uint64),
        ("trims", c_uint64),
    ]


class _FailureStruct(Structure):
    _fields_ = [
        ("bytes", c_uint64),
        ("deficit_bytes", c_uint64),
        ("retry_after_ms", c_int64),
        ("code", c_int32),
        ("reason", c_int32),
        ("message", c_char * 1024),
    ]


_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "gmb_torch_use_library": (c_int32, [c_void_p]),
    "gmb_torch_open": (None, [c_void_p, ctypes.POINTER(c_char_p), c_int32, c_int64]),
    "gmb_torch_close": (None, []),
    "gmb_torch_alloc": (c_void_p, [c_ssize_t, c_int32, c_void_p]),
    "gmb_torch_free": (None, [c_void_p, c_ssize_t, c_int32, c_void_p]),
    "gmb_torch_adopt": (None, [c_void_p, c_int32]),
    "gmb_torch_set_group": (None, [c_uint64, c_int32]),
    "gmb_torch_seal": (c_void_p, [c_uint64]),
    "gmb_torch_find": (c_int32, [c_void_p, ctypes.POINTER(Segment)]),
    "gmb_torch_get_totals": (None, [ctypes.POINTER(Totals)]),
    "gmb_torch_take_failure": (None, [ctypes.POINTER(_FailureStruct)]),
    "gmb_torch_begin_capture": (None, []),
    "gmb_torch_end_capture": (None, []),
    "gmb_torch_set_trim": (None, [_native.TrimCallback]),
}

PATH = _native.library_path("libgmb_torch.so")


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(PATH)
    _native.declare(library, PATH, _FUNCTIONS)
    if not library.gmb_torch_use_library(_native.lib._handle):
        raise ImportError(f"gmb: {_native.lib._name} lacks a function that {PATH} needs")
    return library


lib = _load()
ON_TRIM_ADDRESS = ctypes.cast(lib.gmb_torch_on_trim, c_void_p).value
_trim_callbacks: list[object] = []  # for ever: one may be running while it is replaced


@dataclass(frozen=True)
class Failure:
    """Why the broker made no segment."""

    message: str
    code: int
    reason: int
    requested_bytes: int
    deficit_bytes: int
    retry_after: float

    def as_error(self) -> Error:
        return make_error(
            self.message,
            self.code,
            self.reason,
            deficit_bytes=self.deficit_bytes,
            retry_after=self.retry_after,
        )


def open_session(client: Client, devices: Mapping[int, str], wait: float | None) -> None:
    """Segments are leases of the client now; devices are torch's, by index."""
    count = max(devices, default=-1) + 1
    uuids = (c_char_p * count)(
        *(devices[i].encode() if i in devices else None for i in range(count))
    )
    lib.gmb_torch_open(client._session.handle, uuids, count, _native.milliseconds(wait))


def close_session() -> None:
    """No new segments. Waits for those that are being made."""
    lib.gmb_torch_close()


def find(address: int) -> Segment | None:
    """The segment that holds the address."""
    segment = Segment()
    return segment if lib.gmb_torch_find(address, ctypes.byref(segment)) else None


def adopt(lease: Lease, device: int) -> None:
    """A shared lease is a segment from now on, given back by free() alone."""
    lib.gmb_torch_adopt(lease._detach(), device)


def free(address: int) -> None:
    """Gives a segment back, as torch does; at the end of a capture that is under way."""
    lib.gmb_torch_free(address, 0, 0, None)


def totals() -> Totals:
    found = Totals()
    lib.gmb_torch_get_totals(ctypes.byref(found))
    return found


def take_failure() -> Failure | None:
    """Of the calling thread's last request, once."""
    struct = _FailureStruct()
    lib.gmb_torch_take_failure(ctypes.byref(struct))
    if struct.bytes == 0:
        return None
    return Failure(
        message=struct.message.decode(errors="replace"),
        code=struct.code,
        reason=struct.reason,
        requested_bytes=struct.bytes,
        deficit_bytes=struct.deficit_bytes,
        retry_after=struct.retry_after_ms / 1000,
    )


@contextlib.contextmanager
def group(number: int, contents: Contents) -> Iterator[None]:
    """The calling thread's segments belong to the group; groups do not nest."""
    lib.gmb_torch_set_group(number, int(contents))
    try:
        yield
    finally:
        lib.gmb_torch_set_group(0, int(Contents.PRESERVE))


def seal(number: int) -> None:
    """Seals all leases of a group."""
    _native.check(lib.gmb_torch_seal(number))


@contextlib.contextmanager
def capture() -> Iterator[None]:
    """Nothing is released meanwhile: that would destroy a capture."""
    lib.gmb_torch_begin_capture()
    try:
        yield
    finally:
        lib.gmb_torch_end_capture()


def set_trim(callback: Callable[[str, int, float], None] | None) -> None:
    """Sets the function that the client's trims go to. None: nobody, and when it returns none is running."""
    if callback is None:
        lib.gmb_torch_set_trim(_native.TrimCallback(0))
        return
    made = _callbacks.trim(callback)
    _trim_callbacks.append(made)
    lib.gmb_torch_set_trim(made)
