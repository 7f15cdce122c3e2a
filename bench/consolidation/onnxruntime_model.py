"""A text encoder on ONNX Runtime's CUDA provider: 1.25 GiB of weights in float16."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnxruntime
from model_servers.model import Refused
from onnx_encoder import FILE, Shape, encoder
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException
from program_kinds import MAX_BATCH
from scores import checksum

CUDA = "CUDAExecutionProvider"
# As docs/frameworks.md advises where tenants take turns.
_OPTIONS = {CUDA: {"arena_extend_strategy": "kSameAsRequested"}}


def cuda_free_bytes() -> int:
    """Of the device, or of the tenant under `gmb run`."""
    runtime = ctypes.CDLL("libcudart.so.13")  # which the provider has loaded
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if error := runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)):
        raise RuntimeError(f"cudaMemGetInfo: {error}")
    return free.value


@dataclass(frozen=True)
class Place:
    provider: str = CUDA
    free_bytes: Callable[[], int] = cuda_free_bytes


class OnnxModel:
    """ONNX Runtime does not say in Python what it holds.

    It is how much less is free after the load and after the first request of each size. No
    other server allocates at those times: the benchmark loads and asks one after the other.
    """

    def __init__(self, seed: int, shape: Shape = Shape(), place: Place = Place()) -> None:
        self.max_batch = MAX_BATCH
        self._seed, self._shape, self._place = seed, shape, place
        self._session: Any = None
        self._asked: set[int] = set()
        self._held = self._peak = 0
        onnxruntime.preload_dlls()  # CUDA's libraries where wheels have them

    def warm(self) -> None:
        """Loads the kernels with few weights."""
        self._make(replace(self._shape, layers=1, words=256))
        for power in range(self.max_batch.bit_length()):
            self._run(1 << power)
        self.unload()

    def load(self, share_bytes: int | None) -> None:
        if share_bytes is not None:
            raise ValueError("share_bytes: a split is the tenant's limit here")
        self._peak = 0
        self._counted(lambda: self._make(self._shape))

    def unload(self) -> None:
        self._session = None
        gc.collect()
        self._asked, self._held = set(), 0

    def active(self) -> AbstractContextManager[object]:
        return nullcontext()

    def infer(self, batch: int) -> str:
        if batch in self._asked:
            return self._refusing(lambda: self._run(batch))
        answer: str = self._counted(lambda: self._run(batch))
        self._asked.add(batch)
        return answer

    def held_bytes(self) -> int:
        return self._held

    def peak_bytes(self) -> int:
        return self._peak

    def _counted(self, work: Callable[[], Any]) -> Any:
        before = self._place.free_bytes()
        result = self._refusing(work)
        self._held = max(0, self._held + before - self._place.free_bytes())
        self._peak = max(self._peak, self._held)
        return result

    def _refusing(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (Fail, RuntimeException) as error:
            text = str(error)
            if "memory" not in text and "ALLOC_FAILED" not in text:
                raise
        if not self._held:
            self.unload()  # not in the handler: the error's frames hold parts of a session
        raise Refused(text.splitlines()[0])

    def _make(self, shape: Shape) -> None:
        model, weights = encoder(shape, self._seed)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1  # many servers on one machine
        # Else the second request of each size takes one more block, for all of its arrays.
        options.enable_mem_pattern = False
        options.use_deterministic_compute = True
        options.add_external_initializers_from_files_in_memory([FILE], [weights], [weights.nbytes])
        provider = (self._place.provider, _OPTIONS.get(self._place.provider, {}))
        self._session = onnxruntime.InferenceSession(
            model, options, providers=[provider], enable_fallback=0
        )
        if self._session.get_providers()[0] != self._place.provider:
            raise RuntimeError(f"ONNX Runtime runs on {self._session.get_providers()}")
        self._words = shape.words

    def _run(self, batch: int) -> str:
        places = np.arange(batch * self._shape.tokens, dtype=np.int64)
        words = ((places * 7919 + batch) % self._words).reshape(batch, -1)
        (texts,) = self._session.run(None, {"words": words})
        return checksum(texts.reshape(-1))
