"""CUDA graphs whose memory is leased."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from gmb import _segments
from gmb._types import Contents
from gmb.torch._pools import Pool
from gmb.torch._session import current


@contextlib.contextmanager
def graph(
    cuda_graph: torch.cuda.CUDAGraph,
    *,
    pool: Pool | None = None,
    stream: torch.cuda.Stream | None = None,
    capture_error_mode: str = "global",
    wait: float | None = 30.0,
) -> Iterator[None]:
    """As torch.cuda.graph, with memory of the broker: captures what is inside.

    Replay it inside active(). Its tensors and itself survive evictions. Each graph has a
    pool of its own; give the same `pool` to graphs that are replayed in the order in which
    they were captured, and never at once, to have them share memory.
    """
    session = current()
    pool = pool or Pool(session.router, Contents.PRESERVE)
    device = torch.cuda.current_device()
    if device not in pool.mem_pools:
        raise RuntimeError(f"gmb: gmb.torch was not enabled for device {device}")
    mem_pool = pool.mem_pools[device]
    with (
        session.client.active(wait=wait, capture=True),
        _segments.capture(),
        session.router.unrouted(),
        _segments.group(pool.group, pool.contents),
        torch.cuda.graph(
            cuda_graph,
            pool=mem_pool.id,  # type: ignore[arg-type]
            stream=stream,
            capture_error_mode=capture_error_mode,
        ),
    ):
        yield
    # torch keeps the pool's memory, not the pool, which would be empty afterwards.
    cuda_graph._gmb_pool = pool  # type: ignore[attr-defined]
