"""The arguments of a call, as the structs of the C interface.

A struct keeps the texts, arrays and callbacks that it points to alive.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gmb import _callbacks, _native
from gmb._canceller import Canceller
from gmb._native import encode, milliseconds
from gmb._types import Contents, Quota

# For ever: a client may be closed, and collected, inside one of its callbacks.
_callbacks_made: list[Any] = []


def client_options(
    *,
    socket_dir: str | os.PathLike[str] | None,
    tenant: str | None,
    tenant_token: bytes | str | None,
    program: str | None,
    connect_timeout: float,
    answer_timeout: float,
    on_budget_changed: Callable[[Quota], None] | None,
    on_draining: Callable[[float], None] | None,
    on_trim: Callable[[str, int, float], None] | None,
    on_trim_address: int | None,
) -> _native.ClientOptionsStruct:
    options = _native.ClientOptionsStruct(
        struct_size=ctypes.sizeof(_native.ClientOptionsStruct),
        socket_dir=encode(_tenant_dir(socket_dir, tenant)),
        program=encode(program),
        connect_timeout_ms=_at_least_one(connect_timeout),
        answer_timeout_ms=_at_least_one(answer_timeout),
    )
    if tenant_token is not None:
        token = tenant_token.encode() if isinstance(tenant_token, str) else tenant_token
        if not token:  # to the library none, and so another tenant
            raise ValueError("gmb: the tenant's token is empty")
        options.tenant_token, options.tenant_token_bytes = token, len(token)
    if on_budget_changed is not None:
        options.on_budget_changed = _kept(_callbacks.budget_changed(on_budget_changed))
    if on_draining is not None:
        options.on_draining = _kept(_callbacks.draining(on_draining))
    if on_trim is not None:
        options.on_trim = _kept(_callbacks.trim(on_trim))
    if on_trim_address is not None:
        options.on_trim = _native.TrimCallback(on_trim_address)
    return options


def acquire_options(
    *,
    device: str | None,
    wait: float | None,
    contents: Contents,
    access_from: Sequence[str],
    on_waiting: Callable[[int], None] | None,
    cancel: Canceller | None,
    share_as: str | None,
    keep: bool,
) -> _native.AcquireOptionsStruct:
    options = _native.AcquireOptionsStruct(
        struct_size=ctypes.sizeof(_native.AcquireOptionsStruct),
        device=encode(device),
        wait_ms=milliseconds(wait),
        contents=int(contents),
        keep=keep,
        share_as=None if share_as is None else shared_name(share_as),
    )
    _set_common(options, access_from, on_waiting, cancel)
    return options


def attach_options(
    *,
    wait: float | None,
    access_from: Sequence[str],
    on_waiting: Callable[[int], None] | None,
    cancel: Canceller | None,
) -> _native.AttachOptionsStruct:
    options = _native.AttachOptionsStruct(
        struct_size=ctypes.sizeof(_native.AttachOptionsStruct),
        wait_ms=milliseconds(wait),
    )
    _set_common(options, access_from, on_waiting, cancel)
    return options


def shared_name(name: str) -> bytes | None:
    """Of a shared lease; to the library an empty one is none."""
    if not name:
        raise ValueError("gmb: the name of a shared lease is empty")
    return encode(name)


def _set_common(
    options: _native.AcquireOptionsStruct | _native.AttachOptionsStruct,
    access_from: Sequence[str],
    on_waiting: Callable[[int], None] | None,
    cancel: Canceller | None,
) -> None:
    """The options that acquire and attach have in common."""
    if access_from:
        uuids = (ctypes.c_char_p * len(access_from))(*(encode(u) for u in access_from))
        options.access_from, options.access_from_count = uuids, len(access_from)
    if on_waiting is not None:
        options.on_waiting = _callbacks.waiting(on_waiting)
    if cancel is not None:
        options.canceller = cancel._handle


def _kept(callback: Any) -> Any:
    _callbacks_made.append(callback)
    return callback


def _tenant_dir(
    socket_dir: str | os.PathLike[str] | None, tenant: str | None
) -> str | os.PathLike[str] | None:
    if tenant is None:
        return socket_dir
    if not tenant or "/" in tenant or tenant in (".", ".."):
        raise ValueError(f"gmb: not the name of a tenant: {tenant!r}")
    base = Path(socket_dir or os.environ.get("GMB_SOCKET_DIR") or "/run/gmb")
    # `gmb run` and containers are given a tenant's directory, not the broker's.
    if base.parent.name == "tenants" and not os.path.isdir(base / "tenants"):
        base = base.parent.parent
    return base / "tenants" / tenant


def _at_least_one(seconds: float) -> int:
    # 0 is the library's default.
    return max(1, milliseconds(seconds))
