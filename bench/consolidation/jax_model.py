"""A language model's MLP layers and scores in JAX: 1.25 GiB of weights in bfloat16."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from model_servers.model import Refused
from program_kinds import MAX_BATCH
from scores import checksum

_WIDTH, _LAYERS, _VOCABULARY, _TOKENS = 4096, 4, 32768, 32
_DTYPE = jnp.bfloat16

Weights = dict[str, Any]


def _shapes() -> dict[str, tuple[int, int]]:
    shapes = {"words": (_VOCABULARY, _WIDTH)}
    for layer in range(_LAYERS):
        shapes[f"up{layer}"] = (_WIDTH, 4 * _WIDTH)
        shapes[f"down{layer}"] = (4 * _WIDTH, _WIDTH)
    return shapes


@functools.partial(jax.jit, static_argnums=1)  # in one kernel, without room for parts
def _matrix(key: Any, shape: tuple[int, int]) -> Any:
    return (jax.random.normal(key, shape, jnp.float32) * shape[0] ** -0.5).astype(_DTYPE)


def _forward(weights: Weights, batch: int) -> Any:
    place = jnp.arange(batch * _TOKENS)
    words = (place * 7919 + batch) % _VOCABULARY
    x = weights["words"][words]
    for layer in range(_LAYERS):
        x = x + jax.nn.gelu(x @ weights[f"up{layer}"]) @ weights[f"down{layer}"]
        x = x / (1 + jnp.abs(x).max(-1, keepdims=True))
    chances = jax.nn.log_softmax((x @ weights["words"].T).astype(jnp.float32))
    following = jnp.take_along_axis(chances, jnp.roll(words, -1)[:, None], 1)
    return following.reshape(batch, _TOKENS).mean(1)


class JaxModel:
    """XLA compiles a program for each size of batch, before there are weights."""

    def __init__(self, seed: int) -> None:
        self.max_batch = MAX_BATCH
        self._seed = seed
        self._weights: Weights = {}
        self._programs: dict[int, Any] = {}
        self._device = jax.devices()[0]

    def warm(self) -> None:
        shapes = {name: jax.ShapeDtypeStruct(shape, _DTYPE) for name, shape in _shapes().items()}
        forward = jax.jit(_forward, static_argnums=1)
        for power in range(self.max_batch.bit_length()):
            batch = 1 << power
            self._programs[batch] = forward.lower(shapes, batch).compile()

    def load(self, share_bytes: int | None) -> None:
        if share_bytes is not None:
            raise ValueError("share_bytes: a split is the tenant's limit here")
        key = jax.random.PRNGKey(self._seed)
        try:
            for name, shape in _shapes().items():
                key, own = jax.random.split(key)
                self._weights[name] = _matrix(own, shape).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            self.unload()
            raise Refused(str(error).splitlines()[0]) from error

    def unload(self) -> None:
        self._weights = {}

    def active(self) -> AbstractContextManager[object]:
        return nullcontext()

    def infer(self, batch: int) -> str:
        try:
            return checksum(np.asarray(self._programs[batch](self._weights)))
        except jax.errors.JaxRuntimeError as error:
            raise Refused(str(error).splitlines()[0]) from error

    def held_bytes(self) -> int:
        stats = self._device.memory_stats() or {}
        return int(stats.get("pool_bytes", stats.get("bytes_in_use", 0)))

    def peak_bytes(self) -> int:
        stats = self._device.memory_stats() or {}
        return int(stats.get("peak_pool_bytes", stats.get("peak_bytes_in_use", 0)))
