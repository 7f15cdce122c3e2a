"""From files to the device, through page-locked buffers."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

from gmb._shared_files import Source

_CHUNK_BYTES = 32 << 20
_BUFFERS = 3
_READERS = 6


class _Buffer:
    """Of the host. Not torch's own, which would keep it for the life of the process."""

    def __init__(self, nbytes: int) -> None:
        self.memory = mmap.mmap(-1, nbytes)
        self.tensor = torch.frombuffer(self.memory, dtype=torch.uint8)
        self.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        cudart: Any = torch.cuda.cudart()  # type: ignore
        torch.cuda.check_error(int(cudart.cudaHostRegister(self._address, nbytes, 0)))

    def unlock(self) -> None:
        cudart: Any = torch.cuda.cudart()  # type: ignore
        cudart.cudaHostUnregister(self._address)


@contextmanager
def _buffers(nbytes: int) -> Iterator[list[_Buffer]]:
    made: list[_Buffer] = []
    try:
        for _ in range(_BUFFERS):
            made.append(_Buffer(nbytes))
        yield made
    finally:
        torch.cuda.current_stream().synchronize()
        for buffer in made:
            buffer.unlock()


def copy_to_device(source: Source, target: torch.Tensor) -> None:
    """Reads what is in the lease to `target`, its bytes. Done when it returns."""
    total = source.nbytes
    stream = torch.cuda.Stream(target.device)  # type: ignore[no-untyped-call]
    with (
        torch.cuda.device(target.device),
        torch.cuda.stream(stream),
        _buffers(min(_CHUNK_BYTES, max(1, total))) as buffers,
        ThreadPoolExecutor(_READERS) as readers,
    ):
        for number, begin in enumerate(range(0, total, _CHUNK_BYTES)):
            buffer = buffers[number % _BUFFERS]
            buffer.copied.synchronize()
            count = min(_CHUNK_BYTES, total - begin)
            with memoryview(buffer.memory) as view, view[:count] as part:
                source.read_into(part, begin, readers)
            target[begin : begin + count].copy_(buffer.tensor[:count], non_blocking=True)
            buffer.copied.record(stream)
        stream.synchronize()
