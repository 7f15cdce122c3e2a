"""Of several processes one fills a shared lease, the others attach."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gmb._errors import (
    Code,
    Error,
    FailedPreconditionError,
    NameTakenError,
    NotFoundError,
    Reason,
)

if TYPE_CHECKING:
    from gmb._canceller import Canceller
    from gmb._client import Client
    from gmb._lease import Lease


def attach_or_fill(
    client: Client,
    name: str,
    nbytes: int,
    fill: Callable[[Lease], None],
    device: str | None,
    wait: float | None,
    keep: bool,
    access_from: Sequence[str],
    on_waiting: Callable[[int], None] | None,
    cancel: Canceller | None,
) -> Lease:
    """See Client.shared. The name changes hands meanwhile, so each answer is tried out."""
    deadline = None if wait is None else time.monotonic() + wait

    def left() -> float | None:
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    while True:
        last = left() == 0.0
        try:
            lease = client.attach(
                name,
                wait=left(),
                access_from=access_from,
                on_waiting=on_waiting,
                cancel=cancel,
            )
        except NotFoundError as error:
            if error.reason != Reason.NO_SUCH_LEASE:
                raise
        else:
            return _accepted(lease, name, nbytes, device)
        try:
            lease = client.acquire(
                nbytes,
                device=device,
                wait=left(),
                access_from=access_from,
                on_waiting=on_waiting,
                cancel=cancel,
                share_as=name,
                keep=keep,
            )
        except NameTakenError:
            if last:
                raise
        else:
            return _filled(client, lease, fill, left())


def _filled(
    client: Client, lease: Lease, fill: Callable[[Lease], None], wait: float | None
) -> Lease:
    try:
        with client.active(wait=wait):
            fill(lease)
        lease.seal()
    except BaseException:
        _give_back(lease)
        raise
    return lease


def _accepted(lease: Lease, name: str, nbytes: int, device: str | None) -> Lease:
    if lease.size_bytes >= nbytes and (device is None or lease.device.uuid == device):
        return lease
    size, uuid = lease.size_bytes, lease.device.uuid
    lease.release()
    raise FailedPreconditionError(
        f"gmb: the shared lease of this name is another one: {name!r} has {size} bytes on "
        f"{uuid}, and {nbytes} bytes on {device or 'any device'} are wanted",
        code=Code.FAILED_PRECONDITION,
    )


def _give_back(lease: Lease) -> None:
    """Now, so that another process may fill it; a view that is left keeps it a little."""
    with contextlib.suppress(Error, BufferError):
        lease.release()
