"""JAX as it comes, idle between requests: its memory goes and comes back.

    gate_jax.py DIR

Says "ready" and answers a request whenever DIR/go-N appears; a line for each with
how long it took and whether the answer is the one of before.
"""

import time

import jax
import jax.numpy as jnp
import numpy

from gate_requests import turns

key = jax.random.PRNGKey(1)
weights = [jax.random.normal(key, (4096, 4096), dtype=jnp.bfloat16) for _ in range(16)]
x = jax.random.normal(key, (64, 4096), dtype=jnp.bfloat16)


@jax.jit
def model(parameters, data):
    for w in parameters:
        data = jnp.tanh(data @ w)
    return data


before = numpy.asarray(model(weights, x))
print(f"ready {sum(w.nbytes for w in weights) >> 20} MiB of weights", flush=True)

for turn in turns():
    began = time.monotonic()
    now = numpy.asarray(model(weights, x))
    took = time.monotonic() - began
    began = time.monotonic()
    again = numpy.asarray(model(weights, x))
    resident = time.monotonic() - began
    same = (now == before).all() and (again == before).all()
    print(f"turn {turn}: first answer {took * 1e3:.1f} ms, resident {resident * 1e3:.1f} ms, "
          f"equal {bool(same)}", flush=True)
