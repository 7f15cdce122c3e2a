"""The process's session with the broker, as torch's source of memory."""

from __future__ import annotations

import atexit
import contextlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gmb import _scope, _segments
from gmb._client import Client
from gmb._errors import Code, Error, ForkGuard, NotFoundError
from gmb._types import Contents, DeviceKind
from gmb.torch import _out_of_memory, _sharing
from gmb.torch._pools import Pool, Router
from gmb.torch._shared_segments import SharedSegments
from gmb.torch._trimming import Trimmer

OLDEST_TORCH = (2, 11)
_PARK_AFTER = 0.05


@dataclass(frozen=True)
class Stats:
    """The broker's memory that torch holds, on all devices."""

    segments: int
    leased_bytes: int
    unused_bytes: int  # of scopes' pools, in segments without a tensor


class Session:
    """Made by enable(). Its parts go in the reverse order."""

    def __init__(self, client: Client, uuids: dict[int, str], wait: float | None) -> None:
        self.client = client
        self.uuids = uuids
        self.shared = SharedSegments()
        self.fork_guard = ForkGuard()
        self.router = Router(tuple(uuids), lambda: client.depth > 0)
        self.trimmer = Trimmer(client, self.router, uuids)  # first: a thread may be refused
        try:
            _segments.open_session(client, uuids, wait)
        except BaseException:
            self.trimmer.stop()
            raise
        _segments.set_trim(self.trimmer.trim)
        _out_of_memory.install()
        _sharing.install()
        self.router.disposal.install()
        client._hooks = self
        self.standing = False  # the thread of enable(gate=False) is in a scope

    def entered(self) -> None:
        self.router.entered()

    def leaving(self) -> None:
        self.router.leaving()
        self.trimmer.changed()

    def end(self) -> None:
        self.client._hooks = None
        _segments.set_trim(None)
        self.trimmer.stop()
        _sharing.remove()
        _out_of_memory.remove()
        self.router.drop()
        self.router.disposal.remove()
        _segments.close_session()


_session: Session | None = None


def enable(
    socket_dir: str | os.PathLike[str] | None = None,
    *,
    tenant: str | None = None,
    tenant_token: bytes | str | None = None,
    program: str | None = None,
    devices: Sequence[int] | None = None,
    gate: bool = True,
    park_after: float = _PARK_AFTER,
    group: str | None = None,
    wait: float | None = 10.0,
) -> Client:
    """Connects, and lets torch have the broker's memory inside scopes.

    `devices` are torch's indices of the GPUs to use; the current one by default.
    An allocation that the broker cannot serve at once waits up to `wait` seconds,
    and holds up the other threads' allocations on that GPU meanwhile; then it is
    torch.OutOfMemoryError with the broker's reason. `park_after` and `group` are
    those of Client.gate_on.

    `gate=False` is for programs without scopes: the calling thread allocates from
    the broker until disable(), and nothing is ever lent. Its memory counts as taken
    for good, so the broker may grant less of it.
    """
    global _session
    if _session is not None:
        raise RuntimeError("gmb: gmb.torch is enabled already; disable() it first")
    _check_torch()
    client = Client(
        socket_dir,
        tenant=tenant,
        tenant_token=tenant_token,
        program=program,
        _on_trim_address=_segments.ON_TRIM_ADDRESS,
        _joins_run=True,
    )
    # Before it is known to anyone: what fails leaves all as it was.
    with contextlib.ExitStack() as undo:
        undo.callback(client.close)
        uuids = _uuids(client, devices)
        if gate:
            _warn_if_run_decides(client, park_after, group)
            client.gate_on(park_after=park_after, group=group)
        session = Session(client, uuids, wait)
        undo.callback(session.end)
        if not gate:
            undo.callback(_leave_if_in, client)
            client.enter()
        undo.pop_all()
    session.standing = not gate
    _session = session
    _scope.offer_default(client)
    return client


def _warn_if_run_decides(client: Client, park_after: float, group: str | None) -> None:
    if client._joined and (group is not None or park_after != _PARK_AFTER):
        warnings.warn(
            "gmb: under `gmb run` the process is parked as its --park-after and --group say; "
            "park_after and group of gmb.torch.enable() are not heeded",
            RuntimeWarning,
            stacklevel=3,
        )


def _leave_if_in(client: Client) -> None:
    if client.depth:
        client.leave()


def disable(*, wait: float | None = 30.0) -> None:
    """Ends the session. Tensors that are there stay, and are not lent any more.

    No scope may be in. With tensors whose memory is away it waits up to `wait`
    seconds for that; it fails, and changes nothing, as Client.gate_off does.
    """
    global _session
    if _session is None or _session.fork_guard.in_child():
        return
    session = _session
    if session.client._session.scopes > session.standing:
        raise RuntimeError("gmb: scopes are in; leave them before gmb.torch.disable()")
    if session.standing:
        session.client.leave()
        session.standing = False
    session.trimmer.trim()
    # Of a program under `gmb run` every call is seen: its tensors need no scope.
    kept = _segments.totals().segments > 0 and not session.client._joined
    if kept and _alive(session.client):
        session.client.gate_off(wait=wait)
    _session = None
    session.end()
    session.client.close()


def enabled() -> bool:
    return _session is not None


def current() -> Session:
    if _session is None:
        raise RuntimeError("gmb: gmb.torch is not enabled; call gmb.torch.enable() first")
    _session.fork_guard.check()
    return _session


def pool(contents: Contents = Contents.PRESERVE) -> Pool:
    """A pool of its own, for what is to be treated in another way than the rest.

    `with gmb.torch.active(), pool:` allocates from it. DISCARD is for what can be made
    anew (it costs no copy), RESIDENT for what must never move (NCCL, RDMA, peers).
    """
    return Pool(current().router, contents)


def trim() -> None:
    """Gives all cached memory without tensors back, as the broker's trim does."""
    current().trimmer.trim()


def stats() -> Stats:
    totals = _segments.totals()
    unused = current().router.unused_bytes()
    return Stats(totals.segments, totals.bytes, sum(unused.values()))


def _alive(client: Client) -> bool:
    with contextlib.suppress(Error):
        client.check()
        return True
    return False


def _check_torch() -> None:
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST_TORCH:
        raise RuntimeError(
            f"gmb: gmb.torch needs PyTorch {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} or newer; "
            f"this is {torch.__version__}"
        )
    if not torch.cuda.is_available():
        raise RuntimeError("gmb: torch sees no CUDA device in this process")
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        raise RuntimeError(
            f"gmb: gmb.torch needs torch's native allocator, and PYTORCH_ALLOC_CONF asks for "
            f"{backend}; take that out"
        )


def _uuids(client: Client, devices: Sequence[int] | None) -> dict[int, str]:
    offered = {device.uuid: device for device in client.devices}
    found = {}
    for index in [torch.cuda.current_device()] if devices is None else devices:
        uuid = f"GPU-{torch.cuda.get_device_properties(index).uuid}"
        if uuid not in offered or offered[uuid].kind not in (DeviceKind.VMM, DeviceKind.IPC):
            raise NotFoundError(
                f"gmb: the broker does not have torch's device {index} ({uuid}); it has "
                f"{', '.join(offered) or 'none'}",
                code=Code.NOT_FOUND,
            )
        found[index] = uuid
    return found


def _end_with_process() -> None:
    global _session
    if _session is None or _session.fork_guard.in_child():
        return
    session, _session = _session, None
    if session.standing:
        with contextlib.suppress(Error, RuntimeError):
            session.client.leave()  # on another thread it cannot be left any more
    session.end()


atexit.register(_end_with_process)
