"""Leases of device memory from a gmb broker.

    import gmb

    client = gmb.connect()                  # GMB_SOCKET_DIR, or /run/gmb
    with client.acquire(64 << 20, wait=10) as lease:
        lease.fill(0xA5)
        ...                                 # lease.address, lease.size_bytes

    client.gate_on()                        # from here on, memory is lent when idle
    with gmb.active():                      # and comes back here
        ...                                 # submit work

PyTorch's memory comes from the broker with `gmb.torch` (import it by name).
Words and rules are those of docs/client.md, this package is in docs/python.md.
"""

from gmb._canceller import Canceller
from gmb._client import Client, connect
from gmb._errors import (
    CancelledError,
    Code,
    ContentsLostError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    ForkedError,
    InvalidArgumentError,
    NameTakenError,
    NotFoundError,
    OutOfMemoryError,
    PermissionDeniedError,
    Reason,
    UnavailableError,
)
from gmb._lease import Lease
from gmb._native import library_version
from gmb._safetensors import SafetensorsError
from gmb._scope import Scope, active
from gmb._types import Contents, Device, DeviceKind, Quota
from gmb._version import __version__

__all__ = [
    "CancelledError",
    "Canceller",
    "Client",
    "Code",
    "Contents",
    "ContentsLostError",
    "DeadlineExceededError",
    "Device",
    "DeviceKind",
    "Error",
    "FailedPreconditionError",
    "ForkedError",
    "InvalidArgumentError",
    "Lease",
    "NameTakenError",
    "NotFoundError",
    "OutOfMemoryError",
    "PermissionDeniedError",
    "Quota",
    "Reason",
    "SafetensorsError",
    "Scope",
    "UnavailableError",
    "__version__",
    "active",
    "connect",
    "library_version",
]
