"""The times in which no broker served, and what they excuse."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# For so long a call waits for the next broker; then it may fail (docs/reliability.md). A server's
# request for memory has 1 s.
CALL_WAITS_SECONDS = 0.9


class Outages:
    """Times of time.monotonic(). One writer; read from any thread."""

    def __init__(self) -> None:
        self._past: list[tuple[float, float]] = []
        self._since: float | None = None

    @contextmanager
    def one(self) -> Iterator[None]:
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._past.append((self._since, time.monotonic()))
            self._since = None

    def longest(self, began: float = 0.0) -> float:
        """The length of the longest that was not over at `began`, up to now."""
        since = self._since
        found = [until - begin for begin, until in list(self._past) if until >= began]
        if since is not None:
            found.append(time.monotonic() - since)
        return max(found, default=0.0)

    def any_since(self, began: float) -> bool:
        return self.longest(began) > 0
