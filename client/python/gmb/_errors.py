"""Errors of the broker and the library, as exceptions."""

from __future__ import annotations

import enum
import os

_forks = 0


def _after_fork_in_child() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork_in_child)


# As the library's own message begins.
_FORKED = "gmb: this process was forked"


class Code(enum.IntEnum):
    """gRPC's status codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Reason(enum.IntEnum):
    """Why the broker refused. NONE: the library or the transport did."""

    NONE = 0
    BAD_REQUEST = 1
    NO_SESSION = 2
    NOT_OPERATOR = 3
    NO_SUCH_LEASE = 4
    NO_SUCH_TENANT = 5
    NO_SUCH_DEVICE = 6
    TENANT_LIMIT = 7
    TOO_MANY_HANDLES = 8
    POOL_EXHAUSTED = 9
    OVERCOMMITTED = 10
    BAD_STATE = 11
    CANCELLED_BY_CLIENT = 12
    DRAINING = 13
    DEVICE_ERROR = 14
    DEVICE_LOST = 15
    TOO_MANY_SESSIONS = 16
    TOO_MANY_REQUESTS = 17
    PAUSING = 18
    CONTENTS_LOST = 19
    NAME_TAKEN = 20


class Error(RuntimeError):
    """A call failed; the message says what to do. Base of all below.

    `code` is gRPC's, `reason` the broker's, `field` names what was wrong with
    BAD_REQUEST, `deficit_bytes` is how many bytes were too many, and
    `retry_after` in how many seconds trying again may help (0: not said).
    A newer broker's code or reason that this package does not know is an int.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = Code.UNKNOWN,
        reason: int = Reason.NONE,
        field: str = "",
        deficit_bytes: int = 0,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.code = _known(Code, code)
        self.reason = _known(Reason, reason)
        self.field = field
        self.deficit_bytes = deficit_bytes
        self.retry_after = retry_after


class InvalidArgumentError(Error, ValueError):
    """An argument is wrong: see `field`."""


class OutOfMemoryError(Error, MemoryError):
    """The tenant's limit, the pool, or a limit on handles or requests is reached."""


class FailedPreconditionError(Error):
    """Not in this state: OVERCOMMITTED, BAD_STATE, or the message says why."""


class ForkedError(FailedPreconditionError):
    """This process was forked from one that uses gmb: start it with spawn or forkserver."""


class NotFoundError(Error, LookupError):
    """The broker does not have it, or this process does not see it."""


class NameTakenError(Error, FileExistsError):
    """A shared lease of that name is there, or is being made: attach to it."""


class CancelledError(Error):
    """The request was withdrawn."""


class DeadlineExceededError(Error, TimeoutError):
    """The broker did not answer in time, or the memory did not come back."""


class UnavailableError(Error, ConnectionError):
    """Nobody listens, the session is over (connect again), or the client is closed."""


class ContentsLostError(Error):
    """The contents of leases are lost: make them anew."""


class PermissionDeniedError(Error, PermissionError):
    """This user may not enter the socket directory, or the session has ended."""


_BY_CODE: dict[int, type[Error]] = {
    Code.INVALID_ARGUMENT: InvalidArgumentError,
    Code.OUT_OF_RANGE: InvalidArgumentError,
    Code.RESOURCE_EXHAUSTED: OutOfMemoryError,
    Code.FAILED_PRECONDITION: FailedPreconditionError,
    Code.NOT_FOUND: NotFoundError,
    Code.ALREADY_EXISTS: NameTakenError,
    Code.CANCELLED: CancelledError,
    Code.DEADLINE_EXCEEDED: DeadlineExceededError,
    Code.UNAVAILABLE: UnavailableError,
    Code.DATA_LOSS: ContentsLostError,
    Code.PERMISSION_DENIED: PermissionDeniedError,
    Code.UNAUTHENTICATED: PermissionDeniedError,
}


def _known(kind: type[enum.IntEnum], value: int) -> int:
    try:
        return kind(value)
    except ValueError:
        return value


def make_error(message: str, code: int, reason: int, **detail: object) -> Error:
    """The exception of that code."""
    kind = _BY_CODE.get(code, Error)
    if kind is FailedPreconditionError and message.startswith(_FORKED):
        kind = ForkedError
    return kind(message, code=code, reason=reason, **detail)  # type: ignore[arg-type]


class ForkGuard:
    """Knows whether this process was forked since the guard was made.

    A child has the parent's objects, and locks in any state: nothing of a session may be
    touched there.
    """

    def __init__(self) -> None:
        self._forks = _forks

    def in_child(self) -> bool:
        return _forks != self._forks

    def check(self) -> None:
        if _forks != self._forks:  # in_child(), without a call in each scope
            raise ForkedError(
                f"{_FORKED} from one that uses gmb: sessions and leases stay with the parent; "
                "start it with spawn or forkserver, and connect there",
                code=Code.FAILED_PRECONDITION,
            )
