"""The tensors of safetensors files in a shared lease. Works without torch.

In the lease each tensor begins at a multiple of 256 bytes, in the order of the files and
of the bytes in them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from gmb._safetensors import SafetensorsError, read_header

if TYPE_CHECKING:
    from gmb._client import Client
    from gmb._lease import Lease

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]

ALIGNMENT = 256
MOST_NAME = 128 - 1 - 16  # what is left of a shared lease's name
_READ_BYTES = 8 << 20
_SAMPLE_BYTES = 256


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
        self._hash = hashlib.sha256(b"gmb safetensors 1")
        try:
            for path in listed:
                self._add(os.fspath(path))
            names = {tensor.name for tensor in self.tensors}
            if len(names) != len(self.tensors):
                raise SafetensorsError("gmb: a tensor is in two of the files")
        except BaseException:
            self.close()
            raise

    def _add(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._fds.append(fd)
        header = read_header(fd, path)
        self._hash.update(len(header.raw).to_bytes(8, "little") + header.raw)
        for entry in header.entries:
            offset = -(-self.nbytes // ALIGNMENT) * ALIGNMENT
            self.tensors.append(
                Placed(entry.name, entry.dtype, entry.shape, offset, entry.nbytes)
            )
            if entry.nbytes == 0:
                continue
            self.nbytes = offset + entry.nbytes
            self._hash.update(self._sample(fd, entry.begin, entry.nbytes))
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

    @staticmethod
    def _sample(fd: int, begin: int, nbytes: int) -> bytes:
        """Of a tensor's middle: other weights of the same shape are another lease."""
        count = min(nbytes, _SAMPLE_BYTES)
        return os.pread(fd, count, begin + (nbytes - count) // 2)

    def shared_name(self, name: str, device: str) -> str:
        """Of the lease: who has another file, or device, has another one."""
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

        What lies between tensors is left alone.
        """
        parts = self._parts(buffer, offset)
        for _ in map(_read, parts) if readers is None else readers.map(_read, parts):
            pass

    def _parts(
        self, buffer: memoryview, offset: int
    ) -> Iterator[tuple[int, int, memoryview]]:
        end = offset + len(buffer)
        for piece in self._pieces:
            at = max(offset, piece.offset)
            stop = min(end, piece.offset + piece.nbytes)
            while at < stop:
                count = min(_READ_BYTES, stop - at)
                begin = piece.begin + at - piece.offset
                yield piece.fd, begin, buffer[at - offset : at - offset + count]
                at += count

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

    `device` is a UUID.
    """
    return client.shared(
        source.shared_name(name, device),
        max(1, source.nbytes),
        lambda lease: fill(source, lease),
        device=device,
        wait=wait,
        keep=keep,
    )


def fill_host(source: Source, lease: Lease) -> None:
    """On a host device the files are read to where they belong."""
    with lease.view() as view, view[: source.nbytes] as used:
        source.read_into(used, 0)


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
