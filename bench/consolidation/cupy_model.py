"""A table of embeddings and an MLP over it in CuPy: 1.5 GiB of weights in float16."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import cupy
from model_servers.model import Refused
from program_kinds import MAX_BATCH
from scores import checksum

_ROWS, _WIDTH, _LAYERS, _USERS = 65536, 4096, 4, 64


class CupyModel:
    def __init__(self, seed: int) -> None:
        self.max_batch = MAX_BATCH
        self._seed = seed
        self._table: Any = None
        self._layers: list[tuple[Any, Any]] = []
        self._pool = cupy.get_default_memory_pool()
        self._peak = 0

    def warm(self) -> None:
        """Loads the kernels on few rows."""
        self._make(rows=256, layers=1)
        for power in range(self.max_batch.bit_length()):
            self._run(1 << power)
        self.unload()

    def load(self, share_bytes: int | None) -> None:
        if share_bytes is not None:
            raise ValueError("share_bytes: a split is the tenant's limit here")
        try:
            self._make(_ROWS, _LAYERS)
        except cupy.cuda.memory.OutOfMemoryError as error:
            text = str(error)
        else:
            self._peak = 0
            return
        self.unload()  # not in the handler: the error's frames hold arrays
        raise Refused(text)

    def unload(self) -> None:
        self._table, self._layers = None, []
        self._pool.free_all_blocks()

    def active(self) -> AbstractContextManager[object]:
        return nullcontext()

    def infer(self, batch: int) -> str:
        try:
            total = self._run(batch)
        except cupy.cuda.memory.OutOfMemoryError as error:
            text = str(error)
        else:
            self._peak = max(self._peak, self.held_bytes())
            return total
        raise Refused(text)

    def held_bytes(self) -> int:
        return int(self._pool.total_bytes())

    def peak_bytes(self) -> int:
        return self._peak

    def _make(self, rows: int, layers: int) -> None:
        random = cupy.random.default_rng(self._seed)

        def matrix(height: int, width: int) -> Any:
            made = random.standard_normal((height, width), dtype=cupy.float32)
            return (made * height**-0.5).astype(cupy.float16)

        self._layers = [
            (matrix(_WIDTH, 4 * _WIDTH), matrix(4 * _WIDTH, _WIDTH)) for _ in range(layers)
        ]
        self._table = matrix(rows, _WIDTH)
        cupy.cuda.get_current_stream().synchronize()
        self._pool.free_all_blocks()

    def _run(self, batch: int) -> str:
        place = cupy.arange(batch * _USERS)
        x = self._table[(place * 7919 + batch) % len(self._table)]
        for up, down in self._layers:
            x = x + cupy.maximum(x @ up, 0) @ down
        scores = x.astype(cupy.float32).reshape(batch, -1).mean(1)
        return checksum(cupy.asnumpy(scores))
