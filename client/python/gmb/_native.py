"""libgmb.so through ctypes: the C interface of gmb/c_api.h."""

from __future__ import annotations

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

from gmb import _sizes
from gmb._errors import make_error

ABI_MAJOR = 0
WAIT_LONGEST = -1


class QuotaStruct(Structure):
    _fields_ = [
        ("device", c_char * 64),
        ("guarantee_bytes", c_uint64),
        ("limit_bytes", c_uint64),
        ("leased_bytes", c_uint64),
        ("unreturned_bytes", c_uint64),
        ("pool_bytes", c_uint64),
        ("obtainable_bytes", c_uint64),
        ("over_limit_bytes", c_uint64),
        ("weight", c_double),
        ("evicted_bytes", c_uint64),
    ]


class DeviceStruct(Structure):
    _fields_ = [
        ("uuid", c_char * 64),
        ("name", c_char * 64),
        ("granularity_bytes", c_uint64),
        ("total_bytes", c_uint64),
        ("kind", c_int32),
    ]


BudgetCallback = CFUNCTYPE(None, POINTER(QuotaStruct), c_void_p)
DrainingCallback = CFUNCTYPE(None, c_int64, c_void_p)
TrimCallback = CFUNCTYPE(None, c_char_p, c_uint64, c_int64, c_void_p)
WaitingCallback = CFUNCTYPE(None, c_uint64, c_void_p)


class ClientOptionsStruct(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("socket_dir", c_char_p),
        ("program", c_char_p),
        ("tenant_token", c_char_p),
        ("tenant_token_bytes", c_size_t),
        ("connect_timeout_ms", c_int64),
        ("answer_timeout_ms", c_int64),
        ("on_budget_changed", BudgetCallback),
        ("on_draining", DrainingCallback),
        ("user", c_void_p),
        ("on_trim", TrimCallback),
    ]


class AcquireOptionsStruct(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_char_p),
        ("wait_ms", c_int64),
        ("contents", c_int32),
        ("keep", c_int32),
        ("access_from", POINTER(c_char_p)),
        ("access_from_count", c_size_t),
        ("canceller", c_void_p),
        ("on_waiting", WaitingCallback),
        ("user", c_void_p),
        ("share_as", c_char_p),
    ]


class AttachOptionsStruct(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("wait_ms", c_int64),
        ("access_from", POINTER(c_char_p)),
        ("access_from_count", c_size_t),
        ("canceller", c_void_p),
        ("on_waiting", WaitingCallback),
        ("user", c_void_p),
    ]


_ERROR = c_void_p  # gmb_error*, ours to free
_CONNECT: tuple[object, list[object]] = (
    _ERROR,
    [POINTER(ClientOptionsStruct), POINTER(c_void_p)],
)
_OF_GMB_RUN: dict[str, tuple[object, list[object]]] = {
    "gmb_run_library": (c_char_p, []),
    "gmb_run_join": _CONNECT,
}

_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "gmb_abi_version": (None, [POINTER(c_uint32), POINTER(c_uint32)]),
    "gmb_version": (c_char_p, []),
    "gmb_error_code": (c_int32, [_ERROR]),
    "gmb_error_reason": (c_int32, [_ERROR]),
    "gmb_error_message": (c_char_p, [_ERROR]),
    "gmb_error_field": (c_char_p, [_ERROR]),
    "gmb_error_deficit_bytes": (c_uint64, [_ERROR]),
    "gmb_error_retry_after_ms": (c_int64, [_ERROR]),
    "gmb_error_free": (None, [_ERROR]),
    "gmb_client_connect": _CONNECT,
    "gmb_client_close": (None, [c_void_p]),
    "gmb_client_status": (_ERROR, [c_void_p]),
    "gmb_client_tenant": (c_char_p, [c_void_p]),
    "gmb_client_session_id": (c_uint64, [c_void_p]),
    "gmb_client_warning": (c_char_p, [c_void_p, c_size_t]),
    "gmb_client_devices": (
        _ERROR,
        [c_void_p, POINTER(DeviceStruct), c_size_t, c_size_t, POINTER(c_size_t)],
    ),
    "gmb_client_quota": (
        _ERROR,
        [c_void_p, POINTER(QuotaStruct), c_size_t, c_size_t, POINTER(c_size_t)],
    ),
    "gmb_gate_on": (_ERROR, [c_void_p, c_int64, c_char_p]),
    "gmb_gate_off": (_ERROR, [c_void_p, c_int64]),
    "gmb_enter": (_ERROR, [c_void_p, c_int64]),
    "gmb_enter_capture": (_ERROR, [c_void_p, c_int64]),
    "gmb_leave": (_ERROR, [c_void_p]),
    "gmb_set_trimmable": (_ERROR, [c_void_p, c_char_p, c_uint64]),
    "gmb_canceller_create": (_ERROR, [POINTER(c_void_p)]),
    "gmb_canceller_cancel": (None, [c_void_p]),
    "gmb_canceller_free": (None, [c_void_p]),
    "gmb_internal_silence": (c_int32, [c_int64]),
    "gmb_acquire": (
        _ERROR,
        [c_void_p, c_uint64, POINTER(AcquireOptionsStruct), POINTER(c_void_p)],
    ),
    "gmb_attach": (
        _ERROR,
        [c_void_p, c_char_p, POINTER(AttachOptionsStruct), POINTER(c_void_p)],
    ),
    "gmb_drop": (_ERROR, [c_void_p, c_char_p]),
    "gmb_lease_attached": (c_int32, [c_void_p]),
    "gmb_lease_data": (c_void_p, [c_void_p]),
    "gmb_lease_size_bytes": (c_uint64, [c_void_p]),
    "gmb_lease_id": (c_uint64, [c_void_p]),
    "gmb_lease_device": (c_char_p, [c_void_p]),
    "gmb_lease_release": (_ERROR, [c_void_p]),
    "gmb_lease_release_soon": (None, [c_void_p]),
    "gmb_lease_seal": (_ERROR, [c_void_p]),
    "gmb_lease_copy_to_host": (_ERROR, [c_void_p, c_void_p, c_uint64, c_uint64]),
    "gmb_lease_copy_from_host": (_ERROR, [c_void_p, c_uint64, c_void_p, c_uint64]),
    "gmb_lease_fill": (_ERROR, [c_void_p, c_uint64, c_uint8, c_uint64]),
}


def library_path(*names: str) -> str:
    """Where a library of ours is: GMB_LIBRARY_DIR, this package, or the system."""
    folders = [Path(__file__).parent / "_lib"]
    if own := os.environ.get("GMB_LIBRARY_DIR"):
        folders.insert(0, Path(own))
    paths = [folder / name for folder in folders for name in names]
    return next((str(path) for path in paths if path.exists()), names[-1])


def _of_gmb_run() -> tuple[ctypes.CDLL, Any] | None:
    """The library that `gmb run` has loaded into this process, and how to join its session.

    Handles of that session are known to no other copy. One that is older than this package,
    or has another ABI, is left alone, and so is its session.
    """
    process = ctypes.CDLL(None)
    try:
        declare(process, "the process", _OF_GMB_RUN)
        path = process.gmb_run_library()
        if path is None:
            return None
        library = ctypes.CDLL(os.fsdecode(path))
        declare(library, os.fsdecode(path), _FUNCTIONS)
        major, minor = c_uint32(), c_uint32()
        library.gmb_abi_version(ctypes.byref(major), ctypes.byref(minor))
        if major.value != ABI_MAJOR:
            return None
    except (OSError, ImportError):
        return None
    return library, process.gmb_run_join


def _load() -> tuple[ctypes.CDLL, Any]:
    found = _of_gmb_run()
    if found is not None:
        return found
    path = library_path(f"libgmb-client.so.{ABI_MAJOR}", f"libgmb.so.{ABI_MAJOR}")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"gmb: cannot load {path} ({error}); install the package with pip, or set "
            "GMB_LIBRARY_DIR to the folder that holds it"
        ) from error
    declare(library, path, _FUNCTIONS)
    return library, None


def declare(
    library: ctypes.CDLL, path: str, functions: dict[str, tuple[object, list[object]]]
) -> None:
    """Says what the functions take and return. ImportError when the library is older."""
    for name, (result, arguments) in functions.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ImportError(
                f"gmb: {path} is older than this package: it has no {name}; install the "
                "package with pip, or set GMB_LIBRARY_DIR to the folder of a newer one"
            ) from error
        function.restype = result
        function.argtypes = arguments


lib, _join_run = _load()


def connect(options: ClientOptionsStruct, *, joins_run: bool) -> tuple[int, bool]:
    """A session's handle, and whether the session is that of `gmb run`."""
    handle = c_void_p()
    if joins_run and _join_run is not None:
        check(_join_run(ctypes.byref(options), ctypes.byref(handle)))
        if handle.value is not None:
            return handle.value, True
    check(lib.gmb_client_connect(ctypes.byref(options), ctypes.byref(handle)))
    assert handle.value is not None
    return handle.value, False


def raise_error(error: int) -> None:
    """Raises what a gmb_error* says, and frees it."""
    message = lib.gmb_error_message(error).decode(errors="replace")
    code, reason = lib.gmb_error_code(error), lib.gmb_error_reason(error)
    detail = {
        "field": lib.gmb_error_field(error).decode(errors="replace"),
        "deficit_bytes": lib.gmb_error_deficit_bytes(error),
        "retry_after": lib.gmb_error_retry_after_ms(error) / 1000,
    }
    lib.gmb_error_free(error)
    raise make_error(message, code, reason, **detail)


def check(error: int | None) -> None:
    """Raises unless the call succeeded."""
    if error:
        raise_error(error)


def milliseconds(seconds: float | None) -> int:
    """For the C interface; None is as long as the broker allows."""
    if seconds is None:
        return WAIT_LONGEST
    if seconds < 0:
        raise ValueError("gmb: a time is below 0")
    return -int(-min(seconds, 1e9) * 1000 // 1)


def byte_count(count: int | str, what: str = "a size") -> int:
    """For the C interface, whose numbers ctypes would cut to 64 bits without a word."""
    whole = _sizes.whole_bytes(count, what)
    if whole < 0:
        raise ValueError(f"gmb: {what} is below 0")
    return min(whole, 2**64 - 1)  # more than any lease or device has


def encode(text: str | os.PathLike[str] | None) -> bytes | None:
    """For the C interface, where a text ends at its first NUL."""
    encoded = None if text is None else os.fsencode(text)
    if encoded is not None and b"\0" in encoded:
        raise ValueError(f"gmb: a name has a NUL character: {encoded!r:.150}")
    return encoded


def library_version() -> str:
    """Of the native library that is loaded, as in "0.1.0"."""
    return str(lib.gmb_version().decode())
