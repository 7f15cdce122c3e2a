"""A session with a broker."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol

from gmb import _native, _scope, _shared
from gmb._answers import devices_of, quotas_of, warnings_of
from gmb._canceller import Canceller
from gmb._errors import Code, FailedPreconditionError, NotFoundError
from gmb._lease import Lease, drop_handle
from gmb._native import byte_count, check, encode, lib, milliseconds
from gmb._open_session import OpenSession
from gmb._options import acquire_options, attach_options, client_options, shared_name
from gmb._owner import Owner
from gmb._types import Contents, Device, Quota


class _Thread(threading.local):
    """The scopes of a thread, and which of them the library knows."""

    def __init__(self) -> None:
        self.entered: list[bool] = []


class ScopeHooks(Protocol):
    """Hooks around a thread's outermost scope."""

    def entered(self) -> None: ...

    def leaving(self) -> None: ...


_open_clients: weakref.WeakSet[Client] = weakref.WeakSet()


class Client(Owner):
    """One session. Made by connect(). Any number of threads may use it at once."""

    _instead = "all threads may use the one client, and another process calls connect()"

    def __init__(
        self,
        socket_dir: str | os.PathLike[str] | None = None,
        *,
        tenant: str | None = None,
        tenant_token: bytes | str | None = None,
        program: str | None = None,
        connect_timeout: float = 5.0,
        answer_timeout: float = 30.0,
        on_budget_changed: Callable[[Quota], None] | None = None,
        on_draining: Callable[[float], None] | None = None,
        on_trim: Callable[[str, int, float], None] | None = None,
        _on_trim_address: int | None = None,
        _joins_run: bool = False,
    ) -> None:
        self._thread = _Thread()
        self._hooks: ScopeHooks | None = None
        options = client_options(
            socket_dir=socket_dir,
            tenant=tenant,
            tenant_token=tenant_token,
            program=program,
            connect_timeout=connect_timeout,
            answer_timeout=answer_timeout,
            on_budget_changed=on_budget_changed,
            on_draining=on_draining,
            on_trim=on_trim,
            on_trim_address=_on_trim_address,
        )
        # Under `gmb run`, where that is asked for, the session is the whole program's.
        handle, self._joined = _native.connect(options, joins_run=_joins_run)
        self._session = OpenSession(handle)
        self._tenant: str = lib.gmb_client_tenant(handle).decode()
        self._session_id: int = lib.gmb_client_session_id(handle)
        self._devices = devices_of(handle)
        _open_clients.add(self)

    # --- The session.

    @property
    def tenant(self) -> str:
        return self._tenant

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def closed(self) -> bool:
        return self._session.handle is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the greeting, for people to read."""
        with self._session as handle:
            return warnings_of(handle)

    def check(self) -> None:
        """Raises what every call raises once the session is over."""
        with self._session as handle:
            check(lib.gmb_client_status(handle))

    def quotas(self) -> tuple[Quota, ...]:
        """Asks the broker: one quota a device pool."""
        with self._session as handle:
            return quotas_of(handle, len(self._devices) + 8)

    def close(self) -> None:
        """Ends the session; leases that are held stay valid and keep it until the last.

        Waits for calls of other threads. FailedPreconditionError in a scope, and in the
        middle of a call of this thread: in a callback of it, or a signal handler.
        """
        if not self._session.guard.in_child():
            self._hang_up(self._session.close())

    def _close_unless_in_use(self) -> None:
        """As the process ends: a daemon thread may be inside for as long as it waits."""
        if not self._session.guard.in_child():
            self._hang_up(self._session.close_unless_in_use())

    def _leave_to_the_process(self) -> None:
        """As the process ends, in the middle of a callback: nobody hangs up, which would wait."""
        self._session.close_unless_in_use()

    def _hang_up(self, handle: int | None) -> None:
        if handle is None:
            return
        _open_clients.discard(self)
        _scope.forget_default(self)
        lib.gmb_client_close(handle)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)  # None when connecting failed
        if session is not None and not session.guard.in_child():
            handle = session.abandon()
            if handle is not None:
                lib.gmb_client_close(handle)

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<gmb.Client of {self._tenant}, session {self._session_id}{state}>"

    # --- Leases.

    def acquire(
        self,
        nbytes: int | str,
        *,
        device: str | None = None,
        wait: float | None = 0.0,
        contents: Contents = Contents.PRESERVE,
        access_from: Sequence[str] = (),
        on_waiting: Callable[[int], None] | None = None,
        cancel: Canceller | None = None,
        share_as: str | None = None,
        keep: bool = False,
    ) -> Lease:
        """Leases `nbytes` (or "1.5GiB"), rounded up, as one contiguous range. All or nothing.

        `device` is a UUID; without one it is the broker's only device. `wait` is
        for how many seconds the request may stand in the broker's queue: with 0
        nothing is taken from others for it; None is as long as the broker allows.
        `on_waiting` hears how many requests are ahead, inside this call.

        `share_as`: once it is sealed, other sessions of the tenant may attach() to it by
        this name, 1 to 128 printable characters; NameTakenError when there is one. With
        `keep` it stays when nobody is attached any more, until drop(). See shared().
        """
        size = byte_count(nbytes)
        options = acquire_options(
            device=device,
            wait=wait,
            contents=contents,
            access_from=access_from,
            on_waiting=on_waiting,
            cancel=cancel,
            share_as=share_as,
            keep=keep,
        )
        return self._granted(
            lambda client, out: lib.gmb_acquire(client, size, ctypes.byref(options), out)
        )

    def attach(
        self,
        name: str,
        *,
        wait: float | None = 0.0,
        access_from: Sequence[str] = (),
        on_waiting: Callable[[int], None] | None = None,
        cancel: Canceller | None = None,
    ) -> Lease:
        """Maps a shared lease of this tenant, to be read.

        Waits for up to `wait` seconds until it is sealed, and back on the device.
        NotFoundError: nobody of the tenant shares that, or its writer ended before it was
        sealed; FailedPreconditionError with BAD_STATE: not sealed in time, or this session
        has it. A write to it through its address faults: it ends what the process does on
        a GPU, and the process itself on a host device. (On an `ipc` device it goes through.)
        """
        options = attach_options(
            wait=wait, access_from=access_from, on_waiting=on_waiting, cancel=cancel
        )
        encoded = shared_name(name)
        return self._granted(
            lambda client, out: lib.gmb_attach(client, encoded, ctypes.byref(options), out)
        )

    def _granted(self, call: Callable[[int, Any], Any]) -> Lease:
        """The lease that the call makes; nobody else has it when an interrupt comes."""
        handle = ctypes.c_void_p()
        try:
            with self._session as client:
                check(call(client, ctypes.byref(handle)))
            return Lease(handle, self)
        except BaseException:
            drop_handle(handle)
            raise

    def shared(
        self,
        name: str,
        nbytes: int | str,
        fill: Callable[[Lease], None],
        *,
        device: str | None = None,
        wait: float | None = 60.0,
        keep: bool = False,
        access_from: Sequence[str] = (),
        on_waiting: Callable[[int], None] | None = None,
        cancel: Canceller | None = None,
    ) -> Lease:
        """A lease that one process of the tenant fills, and all of them read.

        For processes that start at once: one acquires it, calls `fill(lease)` in a scope,
        and seals it; the others attach, and wait for that. When the first one fails or is
        killed, another one fills it. `lease.attached` is False for who filled it. When
        `fill` returns, the device has to be done with it: synchronise. All but `fill` is
        bounded by `wait`.
        """
        size = byte_count(nbytes)
        return _shared.attach_or_fill(
            self, name, size, fill, device, wait, keep, access_from, on_waiting, cancel
        )

    def drop(self, name: str) -> None:
        """Nobody attaches to it any more, its name is free, and it ends with its last session."""
        with self._session as handle:
            check(lib.gmb_drop(handle, shared_name(name)))

    def device_of(self, uuid: str) -> Device:
        for device in self._devices:
            if device.uuid == uuid:
                return device
        raise NotFoundError(f"gmb: the broker has no device {uuid}", code=Code.NOT_FOUND)

    def set_trimmable(self, nbytes: int, device: str | None = None) -> None:
        """Says how much on_trim could release at once, so that the right ones are asked."""
        with self._session as handle:
            check(lib.gmb_set_trimmable(handle, encode(device), byte_count(nbytes)))

    # --- The gate.

    def gate_on(self, *, park_after: float = 0.05, group: str | None = None) -> None:
        """From now on leases are used inside scopes only, on all threads.

        `park_after`: so many seconds without a scope, and the memory may be taken.
        Sessions of the tenant that name the same group lose and regain it together.
        """
        with self._session as handle:
            check(lib.gmb_gate_on(handle, max(1, milliseconds(park_after)), encode(group)))

    def gate_off(self, *, wait: float | None = 30.0) -> None:
        """As if a scope were in that never ends: waits and fails as entering one does."""
        with self._session as handle:
            check(lib.gmb_gate_off(handle, milliseconds(wait)))

    def active(self, *, wait: float | None = 30.0, capture: bool = False) -> _scope.Scope:
        """As gmb.active(), of this session."""
        return _scope.Scope(self, wait=wait, capture=capture)

    def enter(self, wait: float | None = 30.0, *, capture: bool = False) -> None:
        """Enters a scope of the calling thread; leave() goes with it. See active()."""
        entered = self._thread.entered
        if entered and not capture:
            self._session.guard.check()
            entered.append(False)  # the outer one holds the gate
            return
        handle = self._session.begin_scope()
        try:
            function = lib.gmb_enter_capture if capture else lib.gmb_enter
            error = function(handle, milliseconds(wait))
            if error:
                _native.raise_error(error)
            if not entered and self._hooks is not None:
                self._hooks.entered()
        except BaseException:
            # An interrupt may come when the scope is in already; otherwise this does nothing.
            if not entered:
                lib.gmb_error_free(lib.gmb_leave(handle))
            self._session.end_scope()
            raise
        entered.append(True)

    def leave(self) -> None:
        """Leaves the scope that the calling thread entered last."""
        if self._session.guard.in_child():
            return  # it is the parent's
        entered = self._thread.entered
        if not entered:
            raise FailedPreconditionError(
                "gmb: this thread is in no scope of this session: leave on the thread that "
                "entered, and once",
                code=Code.FAILED_PRECONDITION,
            )
        if not entered.pop():
            return
        try:
            if not entered and self._hooks is not None:
                self._hooks.leaving()
        finally:
            error = lib.gmb_leave(self._session.handle)
            self._session.end_scope()
        check(error)

    @property
    def depth(self) -> int:
        """In how many scopes of this session the calling thread is."""
        return 0 if self._session.guard.in_child() else len(self._thread.entered)


def connect(
    socket_dir: str | os.PathLike[str] | None = None,
    *,
    tenant: str | None = None,
    tenant_token: bytes | str | None = None,
    program: str | None = None,
    connect_timeout: float = 5.0,
    answer_timeout: float = 30.0,
    on_budget_changed: Callable[[Quota], None] | None = None,
    on_draining: Callable[[float], None] | None = None,
    on_trim: Callable[[str, int, float], None] | None = None,
) -> Client:
    """Greets the broker and waits for its answer.

    `socket_dir` is the directory of the broker's sockets (without one,
    GMB_SOCKET_DIR and then /run/gmb), `tenant` names the directory of a tenant
    below it (beside it, if it is that of a tenant, as under `gmb run`),
    `tenant_token` is for brokers that tell tenants by token. The first client
    that is open is the one of gmb.active().

    Callbacks run on threads of their own, also while this process does something
    else: `on_budget_changed(quota)`, `on_draining(seconds)` when the broker stops or
    this tenant is being deleted (release what is held and close within so long), and
    `on_trim(device, nbytes, seconds)` when others need memory: release what is cached
    before it returns (see Client.set_trimmable).
    """
    client = Client(
        socket_dir,
        tenant=tenant,
        tenant_token=tenant_token,
        program=program,
        connect_timeout=connect_timeout,
        answer_timeout=answer_timeout,
        on_budget_changed=on_budget_changed,
        on_draining=on_draining,
        on_trim=on_trim,
    )
    _scope.offer_default(client)
    return client


LAST_CALLBACKS_MS = 2000  # how long those that are under way may take, as the process ends


def _close_all() -> None:
    # Before the interpreter goes: callbacks must not find it gone. First, since a session's
    # end waits for its callbacks, however long they take.
    clients = [client for client in _open_clients if not client._session.guard.in_child()]
    if not clients:
        return
    all_over = lib.gmb_internal_silence(LAST_CALLBACKS_MS)
    for client in clients:
        # A session that a daemon thread is inside of stays, rather than the process with it.
        if all_over:
            client._close_unless_in_use()
        else:
            client._leave_to_the_process()


atexit.register(_close_all)
