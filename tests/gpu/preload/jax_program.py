"""JAX as it comes; its allocator is set in the environment."""

import os
import sys

import jax
import jax.numpy as jnp
import numpy

from checks import GIB, attempt, check, finish, leased, mib, note, skip

LIMIT = int(sys.argv[1])
# XLA's other allocators take memory by the driver's VMM functions, which pass by
# (docs/frameworks.md).
SERVED = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR") == "cuda_async"


def product():
    x = numpy.random.default_rng(6).standard_normal((1024, 1024)).astype(numpy.float32)
    y = numpy.asarray(jnp.asarray(x) @ jnp.asarray(x).T)
    check("a matrix product is right", abs(y - x @ x.T).max() < 0.5, jax.devices()[0])


def training():
    key = jax.random.PRNGKey(0)
    weights = [jax.random.normal(key, (1024, 1024)) / 32 for _ in range(8)]

    def loss(parameters, data):
        for w in parameters:
            data = jnp.tanh(data @ w)
        return (data ** 2).mean()

    step = jax.jit(lambda p, d: [w - 0.1 * g for w, g in zip(p, jax.grad(loss)(p, d))])
    data = jax.random.normal(key, (256, 1024))
    first = float(loss(weights, data))
    for _ in range(30):
        weights = step(weights, data)
    last = float(loss(weights, data))
    check("30 steps of training", last < first, f"loss {first:.4f} to {last:.4f}")


def large():
    x = jnp.ones((GIB // 4,), dtype=jnp.float32)
    check("an array of 1 GiB", float(x.sum(dtype=jnp.float32)) == GIB // 4)
    now = leased()
    if SERVED or now >= GIB:
        check("it is in leased memory", now >= GIB, mib(now))
    else:
        skip("it is not in leased memory, as documented", mib(now))
    stats = jax.devices()[0].memory_stats()
    if stats:
        note(f"its own limit {mib(stats.get('bytes_limit', 0))}, "
             f"in use {mib(stats.get('bytes_in_use', 0))}, tenant's limit {mib(LIMIT)}")


note(f"jax {jax.__version__}, " + ", ".join(
    f"{k}={v}" for k, v in os.environ.items() if k.startswith("XLA_")))
for part in (product, training, large):
    attempt(part.__name__, part)
finish()
