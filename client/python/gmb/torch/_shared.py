"""Weights of one file, once on the device for all processes of the tenant."""

from __future__ import annotations

from typing import Any

import torch

from gmb._lease import Lease
from gmb._safetensors import SafetensorsError
from gmb._shared_files import Paths, Source, drop, load
from gmb.torch import _staging
from gmb.torch._session import Session, current
from gmb.torch._shared_segments import SharedSegment, as_tensor

_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
}


def load_shared(
    name: str,
    paths: Paths,
    device: int | torch.device | str | None = None,
    *,
    wait: float | None = 60.0,
    keep: bool = False,
) -> dict[str, torch.Tensor]:
    """The tensors of safetensors files, by name, in memory shared with other processes.

    The first process of the tenant that asks reads the files to the device and seals; all
    others, those that wait meanwhile too, attach. `name` says which weights they are to
    people; files with another header, other sizes, or other bytes at sampled places, are
    another lease, and so is that of another GPU. `keep`: it stays on when no process has
    it, until drop_shared() or `gmb lease drop`. `wait` is how many seconds the broker and
    the other process may take.

    The tensors are for inference, to be used in scopes as all memory of the broker, and
    never to be written to: a write is a fault on the GPU, which ends this process's work
    there. The memory is given back when the last tensor is gone. Not inside a scope, if
    it can be helped: this memory could not be lent while it waits.
    """
    session = current()
    index = _index(session, device)
    with (
        Source(paths) as source,
        session.shared.lock,
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        dtypes = {tensor.dtype: _dtype(tensor.dtype) for tensor in source.tensors}
        uuid = session.uuids[index]
        shared_name = source.shared_name(name, uuid)
        segment = session.shared.by_name.get(shared_name)
        if segment is None:
            segment = SharedSegment(
                load(
                    session.client,
                    name,
                    source,
                    lambda source, lease: _fill(source, lease, index),
                    device=uuid,
                    wait=wait,
                    keep=keep,
                ),
                index,
            )
            session.shared.by_name[shared_name] = segment
        with session.client.active(wait=wait):
            return {
                tensor.name: segment.tensor(
                    dtypes[tensor.dtype], tensor.shape, tensor.offset, tensor.nbytes
                )
                for tensor in source.tensors
            }


def drop_shared(
    name: str, paths: Paths, device: int | torch.device | str | None = None
) -> None:
    """Ends what load_shared() of these files made with `keep`.

    Nobody attaches to it any more; who has it keeps it, and with the last of them it is
    gone. gmb.NotFoundError: there is none.
    """
    session = current()
    index = _index(session, device)
    with Source(paths) as source:
        drop(session.client, name, source, device=session.uuids[index])


def share_module(
    module: torch.nn.Module,
    name: str,
    paths: Paths,
    device: int | torch.device | str | None = None,
    *,
    wait: float | None = 60.0,
    keep: bool = False,
    strict: bool = True,
) -> Any:
    """load_shared(), and the module's parameters and buffers are those tensors.

    The module may be on the "meta" device, so that nothing is loaded twice. What the files
    do not have stays as it is (with `strict=False`), and where it is: buffers that are made
    by code, say. Parameters from the files have requires_grad False, and the dtype of the
    file. Returns what load_state_dict() does.
    """
    tensors = load_shared(name, paths, device, wait=wait, keep=keep)
    changed = [
        parameter
        for parameter_name, parameter in module.named_parameters(remove_duplicate=False)
        if parameter_name in tensors and parameter.requires_grad
    ]
    for parameter in changed:
        parameter.requires_grad_(False)  # which load_state_dict() keeps
    try:
        return module.load_state_dict(tensors, strict=strict, assign=True)
    except BaseException:
        for parameter in changed:
            parameter.requires_grad_(True)
        raise


def _fill(source: Source, lease: Lease, index: int) -> None:
    if source.nbytes:
        target = as_tensor(lease, lease.address, source.nbytes, torch.device("cuda", index))
        _staging.copy_to_device(source, target)


def _index(session: Session, device: int | torch.device | str | None) -> int:
    index: int | None = None
    if isinstance(device, int):
        index = device
    elif device is not None:
        named = torch.device(device)
        if named.type != "cuda":
            raise ValueError(f"gmb: not a CUDA device: {device}")
        index = named.index
    if index is None:
        index = torch.cuda.current_device()
    if index not in session.uuids:
        raise ValueError(
            f"gmb: gmb.torch is not enabled for device {index}; name it in "
            "enable(devices=...)"
        )
    return index


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, _DTYPES[name], None)
    if not isinstance(found, torch.dtype):
        raise SafetensorsError(f"gmb: this torch has no dtype for {name}")
    return found
