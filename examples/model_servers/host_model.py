"""A model of plain bytes on the broker's host device: no GPU, no PyTorch.

Its weights are a sealed lease of bytes that follow from the seed, a burst's activations a
lease that is held for the request alone, and its answer a checksum over both.
"""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import gmb
from model_servers.kinds import HostSizes
from model_servers.model import Refused
from model_servers.worker import WAIT_IN_SCOPE_SECONDS

_PATTERN_BYTES = 1 << 16
_WAIT_SECONDS = 20.0


def _pattern(*of: object) -> bytes:
    return random.Random("/".join(map(str, of))).randbytes(_PATTERN_BYTES)


def _fill(view: memoryview, pattern: bytes) -> None:
    """Repeats it, each time with its number, so that no two places are alike."""
    for number, offset in enumerate(range(0, len(view), len(pattern))):
        piece = number.to_bytes(8, "little") + pattern[8:]
        end = min(offset + len(piece), len(view))
        view[offset:end] = piece[: end - offset]


def expected_sum(sizes: HostSizes, seed: int, batch: int) -> str:
    """The right answer of a server, worked out without a broker."""
    total = 0
    for count, pattern in (
        (sizes.weights_bytes, _pattern("weights", seed)),
        (sizes.bytes_per_item * batch, _pattern("batch", batch)),
    ):
        plain = bytearray(count)
        with memoryview(plain) as view:
            _fill(view, pattern)
            total = zlib.crc32(view, total)
    return f"{total:08x}"


class HostModel:
    """One session of the tenant `name`."""

    def __init__(self, sizes: HostSizes, socket_dir: str | None, name: str, seed: int) -> None:
        self.max_batch = sizes.max_batch
        self._sizes = sizes
        self._seed = seed
        self._client = gmb.connect(socket_dir, tenant=name, program="model server")
        self._client.gate_on(park_after=0.01)
        self._weights: gmb.Lease | None = None
        self._lock = threading.Lock()
        self._peak = 0

    def warm(self) -> None:
        """Nothing: there is no context and no kernel."""

    def load(self, share_bytes: int | None) -> None:
        del share_bytes  # a split is the tenant's limit here
        with self.active(), _refusing():
            lease = self._client.acquire(self._sizes.weights_bytes, wait=_WAIT_SECONDS)
            with lease.view() as view:
                _fill(view[: self._sizes.weights_bytes], _pattern("weights", self._seed))
            lease.seal()
        self._weights = lease
        with self._lock:
            self._peak = 0
        self._note_peak(lease.size_bytes)

    def unload(self) -> None:
        if self._weights is not None:
            self._weights.release()
            self._weights = None

    @contextmanager
    def active(self) -> Iterator[None]:
        with _refusing():
            self._client.enter(_WAIT_SECONDS)
        try:
            yield
        finally:
            self._client.leave()

    def infer(self, batch: int) -> str:
        assert self._weights is not None
        count = self._sizes.bytes_per_item * batch
        with _refusing():
            activations = self._client.acquire(
                count, wait=WAIT_IN_SCOPE_SECONDS, contents=gmb.Contents.DISCARD
            )
        with activations:
            self._note_peak(self._weights.size_bytes + activations.size_bytes)
            with activations.view() as work, self._weights.view() as weights:
                _fill(work[:count], _pattern("batch", batch))
                total = zlib.crc32(weights[: self._sizes.weights_bytes])
                total = zlib.crc32(work[:count], total)
        return f"{total:08x}"

    def held_bytes(self) -> int:
        return sum(q.leased_bytes - q.evicted_bytes for q in self._client.quotas())

    def peak_bytes(self) -> int:
        with self._lock:
            return self._peak

    def _note_peak(self, nbytes: int) -> None:
        with self._lock:
            self._peak = max(self._peak, nbytes)


@contextmanager
def _refusing() -> Iterator[None]:
    """The broker's refusals are the model's."""
    try:
        yield
    except (gmb.OutOfMemoryError, gmb.DeadlineExceededError) as error:
        raise Refused(str(error), final=error.reason == gmb.Reason.TENANT_LIMIT) from error
