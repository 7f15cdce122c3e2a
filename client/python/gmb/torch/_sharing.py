"""Tensors in leases cannot be sent to other processes; torch would only say "invalid argument"."""

from __future__ import annotations

from typing import Any

import torch

from gmb import _segments


def _share(self: Any, *args: Any, **kwargs: Any) -> Any:
    if self.device.type == "cuda" and _segments.find(self.data_ptr()) is not None:
        raise RuntimeError(
            "gmb: a tensor whose memory is leased from the broker cannot be shared with "
            "another process (CUDA IPC): send tensor.cpu(), or a copy that was made outside "
            "of gmb.active()"
        )
    return torch._C.StorageBase._share_cuda_(self, *args, **kwargs)  # type: ignore[attr-defined]


def install() -> None:
    torch.UntypedStorage._share_cuda_ = _share  # type: ignore[method-assign]


def remove() -> None:
    if torch.UntypedStorage.__dict__.get("_share_cuda_") is _share:
        del torch.UntypedStorage._share_cuda_
