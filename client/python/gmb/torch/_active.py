"""Where torch's work is submitted."""

from __future__ import annotations

from types import TracebackType

import torch

from gmb._scope import Scope
from gmb.torch._session import current


class _TorchScope(Scope):
    def __init__(self, wait: float | None, capture: bool, synchronize: bool) -> None:
        super().__init__(None, wait=wait, capture=capture)
        self._synchronize = synchronize

    def __enter__(self) -> Scope:
        self.enter_of(current().client)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._synchronize and error is None:
                torch.cuda.synchronize()
        finally:
            super().__exit__(kind, error, traceback)


def active(
    *, wait: float | None = 30.0, capture: bool = False, synchronize: bool = False
) -> Scope:
    """Where work is submitted: `with gmb.torch.active():`, or `@gmb.torch.active()`.

    As gmb.active(): the calling thread's tensors come from the broker, and those that it
    made in earlier scopes may be used. The GPU need not be waited for; `synchronize` does,
    on the current device. `capture`: torch.compile's or torch's own graphs are captured
    in it (see also gmb.torch.graph).
    """
    return _TorchScope(wait, capture, synchronize)
