"""Bursty requests: models are asked for in bursts, some far more often than others.

A model is on and off in turn, for exponential times; while it is on, requests come as a
Poisson process. Popularity has a heavy tail: within each block of `block` models the r-th
has 1/r of the first one's requests, in longer and more frequent bursts. Each block has the
same mean, so that the first K models of a trace are a trace of K models. The ranks are
turned from block to block, so that what follows the model's number (its kind) is mixed.
Batches are powers of two, and the twice as large is asked for `batch_falloff` as often.

Every model has a generator of its own, made from the seed and its number.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, fields

from load.trace import Request, Trace


@dataclass(frozen=True)
class Shape:
    """The parameters of a trace; all of them go into its header."""

    seed: int = 1
    models: int = 24
    seconds: float = 60.0
    rate: float = 1.0  # requests a second of a model, on average over models and time
    burst_rate: float = 20.0  # requests a second within a burst
    burst_seconds: float = 0.5  # mean length of a burst
    max_batch: int = 64
    batch_falloff: float = 0.6
    block: int = 6


def model_name(number: int) -> str:
    return f"m{number:02d}"


def popularity(shape: Shape, number: int) -> float:
    """Of a model beside the mean."""
    rank = (number + number // shape.block) % shape.block
    mean = sum(1 / (r + 1) for r in range(shape.block)) / shape.block
    return 1 / (rank + 1) / mean


def batches(shape: Shape) -> tuple[list[int], list[float]]:
    """Sizes, and how often they come relative to each other."""
    sizes = [1 << power for power in range(shape.max_batch.bit_length())]
    return sizes, [shape.batch_falloff**power for power in range(len(sizes))]


def _model_requests(shape: Shape, number: int) -> list[Request]:
    chance = random.Random(f"{shape.seed}/{number}")
    sizes, weights = batches(shape)
    rate = shape.rate * popularity(shape, number)
    # A model that is asked for more often than bursts allow is always on.
    off_seconds = max(0.0, shape.burst_seconds * (shape.burst_rate / rate - 1))
    requests: list[Request] = []
    on_until, now = 0.0, 0.0
    if chance.random() < rate / shape.burst_rate:
        on_until = chance.expovariate(1 / shape.burst_seconds)
    while True:
        now += chance.expovariate(shape.burst_rate)
        while now >= on_until:
            # The rest of the step falls into the next burst: a Poisson process has no memory.
            now += chance.expovariate(1 / off_seconds) if off_seconds else 0.0
            begins = now
            on_until = begins + chance.expovariate(1 / shape.burst_seconds)
            now = begins + chance.expovariate(shape.burst_rate)
        if now >= shape.seconds:
            return requests
        batch = chance.choices(sizes, weights)[0]
        requests.append(Request(round(now * 1000, 1), model_name(number), batch))


def make_trace(shape: Shape) -> Trace:
    """The same for the same shape, on every machine."""
    requests: list[Request] = []
    for number in range(shape.models):
        requests += _model_requests(shape, number)
    header = {key: str(value) for key, value in asdict(shape).items()}
    return Trace(tuple(sorted(requests)), header)


def made_like(trace: Trace, seed: int) -> Trace:
    """With another seed, and all else as the header of the trace says."""
    kinds = {field.name: type(field.default) for field in fields(Shape)}
    given = {key: kinds[key](value) for key, value in trace.header.items() if key in kinds}
    return make_trace(Shape(**{**given, "seed": seed}))
