"""Weights: loaded once, sealed, and taken without a copy from then on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from gmb import _segments
from gmb._types import Contents
from gmb.torch._pools import Pool
from gmb.torch._session import current


@contextlib.contextmanager
def weights(*, wait: float | None = 30.0) -> Iterator[None]:
    """A scope in which weights are loaded. Sealed when it ends: not written to any more.

    One host copy of sealed memory stays true for ever, so that the broker takes it without
    another. Everything that is allocated in here is sealed, so load here and do nothing
    else: what is written to later (a KV cache, running statistics, an optimizer's state)
    is allocated elsewhere. When it ends with an exception, nothing is sealed.
    """
    session = current()
    with session.client.active(wait=wait):
        own = Pool(session.router, Contents.PRESERVE)
        try:
            with own:
                yield
            for device in session.router.devices:
                torch.cuda.synchronize(device)
        finally:
            own.drop()  # what was only needed for loading goes back
        _segments.seal(own.group)


def seal(module: torch.nn.Module, *, wait: float | None = 30.0) -> None:
    """Moves the module's parameters and buffers on the GPU into sealed memory, one by one.

    For modules that were not loaded inside weights(). What is sealed already stays where
    it is; parameters that share memory share it afterwards. Pointers to the old memory,
    in captured graphs say, do not follow: seal first.
    """
    with weights(wait=wait), torch.no_grad():
        moved: dict[int, torch.UntypedStorage] = {}
        for tensor in [*module.parameters(), *module.buffers()]:
            storage = tensor.untyped_storage()
            if not tensor.is_cuda or storage.nbytes() == 0 or _is_sealed(storage):
                continue
            if storage.data_ptr() not in moved:
                moved[storage.data_ptr()] = storage.clone()  # type: ignore
            offset, size, stride = tensor.storage_offset(), tensor.size(), tensor.stride()
            replacement = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            replacement.set_(moved[storage.data_ptr()], offset, size, stride)
            # Nothing may reuse the old memory while it is read.
            torch.cuda.synchronize(tensor.device)
            tensor.data = replacement


def _is_sealed(storage: torch.UntypedStorage) -> bool:
    segment = _segments.find(storage.data_ptr())
    return segment is not None and segment.sealed != 0
