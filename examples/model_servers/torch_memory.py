"""Where a torch model's memory comes from: the broker, or torch alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

import torch
from model_servers.model import Refused
from model_servers.worker import WAIT_IN_SCOPE_SECONDS


class Memory(Protocol):
    def prepare(self, share_bytes: int | None) -> None:
        """Before weights are loaded. `share_bytes`: never more of the device than that."""

    def loading(self) -> AbstractContextManager[None]:
        """Around making the weights. Refused when memory did not suffice."""

    def active(self) -> AbstractContextManager[object]:
        """Around a request. Refused when memory did not come back."""

    def trim(self) -> None:
        """Gives back what is cached."""

    def held_bytes(self) -> int: ...


class PlainMemory:
    """torch's own caching allocator: first come, first served; or a share of the device."""

    def prepare(self, share_bytes: int | None) -> None:
        total = torch.cuda.mem_get_info()[1]
        share = 1.0 if share_bytes is None else min(1.0, share_bytes / total)
        torch.cuda.set_per_process_memory_fraction(share)

    def loading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def active(self) -> AbstractContextManager[object]:
        return nullcontext()

    def trim(self) -> None:
        torch.cuda.empty_cache()

    def held_bytes(self) -> int:
        return torch.cuda.memory_reserved()


class GmbMemory:
    """The broker's, by gmb.torch: one session of the tenant."""

    def __init__(self, socket_dir: str | None, tenant: str) -> None:
        self._socket_dir = socket_dir
        self._tenant = tenant

    def prepare(self, share_bytes: int | None) -> None:
        if share_bytes is not None:
            raise ValueError("share_bytes: the broker's tenants have limits; set that")
        import gmb.torch

        if not gmb.torch.enabled():
            self._client = gmb.torch.enable(
                self._socket_dir, tenant=self._tenant, wait=WAIT_IN_SCOPE_SECONDS
            )

    @contextmanager
    def loading(self) -> Iterator[None]:
        import gmb.torch

        with _refusing(), gmb.torch.weights():
            yield

    @contextmanager
    def active(self) -> Iterator[None]:
        import gmb.torch

        scope = gmb.torch.active()
        with _refusing():
            scope.__enter__()
        try:
            yield
        finally:
            scope.__exit__(None, None, None)

    def trim(self) -> None:
        import gmb.torch

        gmb.torch.trim()

    def held_bytes(self) -> int:
        """On the device now, of what is leased; 0 before the first load."""
        import gmb.torch

        if not gmb.torch.enabled():
            return 0
        return sum(q.leased_bytes - q.evicted_bytes for q in self._client.quotas())


@contextmanager
def _refusing() -> Iterator[None]:
    import gmb

    try:
        yield
    except (gmb.OutOfMemoryError, gmb.DeadlineExceededError) as error:
        raise Refused(str(error)) from error
