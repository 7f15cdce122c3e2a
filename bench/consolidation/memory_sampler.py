"""How much of the card the servers hold, looked at while a trial runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType

from load.quantile import quantile
from local_server import ServerError
from model_servers.model_server import ModelServer

_EVERY_SECONDS = 0.5


class MemorySampler:
    """Asks every server for its /stats, from entering to leaving."""

    def __init__(
        self,
        servers: Sequence[ModelServer],
        card_bytes: int,
        held: Callable[[], int] | None = None,
    ) -> None:
        """`held`: what all of them hold, where they do not know it themselves."""
        self._all_held = held
        self._servers = servers
        self._card_bytes = card_bytes
        self._stop = threading.Event()
        self._held: list[int] = []
        self.most_by_model: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="memory sampler")

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._look()
            if self._stop.wait(_EVERY_SECONDS):
                return

    def _look(self) -> None:
        if self._all_held is not None:
            self._held.append(self._all_held())
            return
        held = 0
        for server in self._servers:
            try:
                now = int(server.stats()["held_bytes"])
            except (ServerError, KeyError):
                continue  # the replay says what is wrong with it
            held += now
            self.most_by_model[server.name] = max(now, self.most_by_model.get(server.name, 0))
        self._held.append(held)

    def result(self) -> dict[str, float]:
        """Parts of the card."""
        parts = [held / self._card_bytes for held in self._held]
        return {
            "samples": len(parts),
            "mean": sum(parts) / len(parts),
            "p50": quantile(parts, 0.5),
            "max": max(parts),
        }
