"""The tensors of safetensors files in a shared lease. Works without torch.

In the lease each tensor begins at a multiple of 256 bytes, in the order of the bytes in
the files. The order of the files is that of their digests: it does not matter in which
one they are named, nor what they are called.
"""

from __future__ import annotations

import hashlib
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from gmb._errors import FailedPreconditionError, Reason
from gmb._safetensors import Entry, SafetensorsError, read_header

if TYPE_CHECKING:
    from gmb._client import Client
    from gmb._lease import Lease

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]

ALIGNMENT = 256
MOST_NAME = 128 - 1 - 16  # what is left of a shared lease's name
_READ_BYTES = 8 << 20
_SAMPLE_BYTES = 4096
_SAMPLE_EVERY = 64 << 20
_RELEASE_SECONDS = 5.0
_HAS_IT = "this session has the lease already"  # as the broker's message begins


@dataclass(frozen=True)
class Placed:
    """A tensor; `offset` is where it is in the lease."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True)
class _Piece:
    """Bytes that lie behind each other in a file, and in the lease."""

    fd: int
    begin: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class _File:
    """A file that is open, as it was then."""

    path: str
    fd: int
    status: tuple[int, int]
    entries: tuple[Entry, ...]
    digest: bytes


class Source:
    """Files that are open, and how their tensors lie in a lease. A context manager."""

    def __init__(self, paths: Paths) -> None:
        listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        if not listed:
            raise ValueError("gmb: no file is named")
        self.tensors: list[Placed] = []
        self.nbytes = 0
        self._fds: list[int] = []
        self._pieces: list[_Piece] = []
        self._hash = hashlib.sha256(b"gmb safetensors 2")
        try:
            self._files = [self._open(os.fspath(path)) for path in listed]
            self._files.sort(key=lambda file: file.digest)
            for file in self._files:
                self._place(file)
            names = {tensor.name for tensor in self.tensors}
            if len(names) != len(self.tensors):
                raise SafetensorsError("gmb: a tensor is in two of the files")
        except BaseException:
            self.close()
            raise

    def _open(self, path: str) -> _File:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._fds.append(fd)
        status = _status(fd)
        header = read_header(fd, path)
        digest = hashlib.sha256(len(header.raw).to_bytes(8, "little") + header.raw)
        for entry in header.entries:
            for sample in _samples(fd, entry.begin, entry.nbytes):
                digest.update(sample)
        return _File(path, fd, status, header.entries, digest.digest())

    def _place(self, file: _File) -> None:
        fd = file.fd
        self._hash.update(file.digest)
        for entry in file.entries:
            offset = -(-self.nbytes // ALIGNMENT) * ALIGNMENT
            self.tensors.append(
                Placed(entry.name, entry.dtype, entry.shape, offset, entry.nbytes)
            )
            if entry.nbytes == 0:
                continue
            self.nbytes = offset + entry.nbytes
            last = self._pieces[-1] if self._pieces else None
            if (
                last is not None
                and last.fd == fd
                and last.begin + last.nbytes == entry.begin
                and last.offset + last.nbytes == offset
            ):
                self._pieces[-1] = _Piece(
                    fd, last.begin, last.offset, last.nbytes + entry.nbytes
                )
            else:
                self._pieces.append(_Piece(fd, entry.begin, offset, entry.nbytes))

    def shared_name(self, name: str, device: str) -> str:
        """The lease's name: another file, or device, gives another name."""
        if not 1 <= len(name) <= MOST_NAME or not (name.isascii() and name.isprintable()):
            raise ValueError(
                f"gmb: a name has 1 to {MOST_NAME} printable ASCII characters: {name!r:.150}"
            )
        digest = self._hash.copy()
        digest.update(device.encode())
        return f"{name}@{digest.hexdigest()[:16]}"

    def read_into(
        self, buffer: memoryview, offset: int, readers: Executor | None = None
    ) -> None:
        """Fills the buffer with what is in the lease from `offset` on.

        Bytes between tensors are left alone.
        """
        parts = self._parts(buffer, offset)
        for _ in map(_read, parts) if readers is None else readers.map(_read, parts):
            pass

    def _parts(
        self, buffer: memoryview, offset: int
    ) -> Iterator[tuple[int, int, memoryview]]:
        end = offset + len(buffer)
        first = bisect_right(self._pieces, offset, key=lambda piece: piece.offset) - 1
        for number in range(max(0, first), len(self._pieces)):
            piece = self._pieces[number]
            if piece.offset >= end:
                break
            at = max(offset, piece.offset)
            stop = min(end, piece.offset + piece.nbytes)
            while at < stop:
                count = min(_READ_BYTES, stop - at)
                begin = piece.begin + at - piece.offset
                yield piece.fd, begin, buffer[at - offset : at - offset + count]
                at += count

    def check_unchanged(self) -> None:
        """SafetensorsError if a file was written to since it was opened."""
        for file in self._files:
            if _status(file.fd) != file.status:
                raise SafetensorsError(
                    f"gmb: {file.path}: it was changed while it was read; load it again, and "
                    "replace files by renaming new ones"
                )

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def load(
    client: Client,
    name: str,
    source: Source,
    fill: Callable[[Source, Lease], None],
    *,
    device: str,
    wait: float | None,
    keep: bool,
) -> Lease:
    """A shared lease with what is in the files, filled by the first process.

    `device` is a UUID. When this session has it, and is giving it back on another thread
    just now, that is waited for too: a little.
    """
    began = time.monotonic()
    most = _RELEASE_SECONDS if wait is None else min(wait, _RELEASE_SECONDS)

    def fill_checked(lease: Lease) -> None:
        fill(source, lease)
        source.check_unchanged()  # before it is sealed

    while True:
        spent = time.monotonic() - began
        try:
            return client.shared(
                source.shared_name(name, device),
                max(1, source.nbytes),
                fill_checked,
                device=device,
                wait=None if wait is None else max(0.0, wait - spent),
                keep=keep,
            )
        except FailedPreconditionError as error:
            if spent >= most or error.reason != Reason.BAD_STATE or _HAS_IT not in str(error):
                raise
        time.sleep(0.005)


def drop(client: Client, name: str, source: Source, *, device: str) -> None:
    """The lease that load() made with `keep` ends with its last session. `device` is a UUID."""
    client.drop(source.shared_name(name, device))


def fill_host(source: Source, lease: Lease) -> None:
    """On a host device the files are read to where they belong."""
    with lease.view() as view, view[: source.nbytes] as used:
        source.read_into(used, 0)


def _status(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_size, found.st_mtime_ns


def _samples(fd: int, begin: int, nbytes: int) -> Iterator[bytes]:
    """Of a tensor: its start, middle and end, and some of each stretch of a large one."""
    if nbytes <= _SAMPLE_BYTES:
        yield os.pread(fd, nbytes, begin)
        return
    last = nbytes - _SAMPLE_BYTES
    for at in sorted({*range(0, last, _SAMPLE_EVERY), last // 2, last}):
        yield os.pread(fd, _SAMPLE_BYTES, begin + at)


def _read(part: tuple[int, int, memoryview]) -> None:
    fd, begin, buffer = part
    with buffer:
        done = 0
        while done < len(buffer):
            with buffer[done:] as rest:
                count = os.preadv(fd, [rest], begin + done)
            if count == 0:
                raise SafetensorsError("gmb: a file was truncated while it was read")
            done += count
