"""The steps of a random load and their times: the seed and the other flags decide all of it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

# Requests of a burst, their mean rate a second, and the idle gaps between bursts: most are
# long enough to park in, some for others to take all that is parked.
_MOST_IN_A_BURST = 16
_BURST_RATE = 25.0
_IDLE_SECONDS, _LONG_IDLE_SECONDS, _LONG_PART = 2.0, 8.0, 0.3
# Now and then several models are asked at once, for more memory than there is.
_RUSH_EVERY_SECONDS = 15.0
_BATCH_FALLOFF = 0.6  # the twice as large is asked for so often


@dataclass(frozen=True, order=True)
class Action:
    at: float  # seconds after the load's begin
    what: str  # "request", "kill", "stop", "reclaim", "limit" or "kill_broker"
    model: int = 0
    # request: the batch. reclaim: the part of what is held; 0: all that can be had. limit: the
    # part of what the model has at most.
    amount: float = 0.0
    # stop, limit: how long. reclaim: how long it may take. kill_broker: until the next starts.
    seconds: float = 0.0


@dataclass(frozen=True)
class Shape:
    """Of what is done to processes: the mean seconds between two; 0: never."""

    seed: int
    models: int
    seconds: float
    kill: float = 25.0
    stop: float = 5.0
    reclaim: float = 4.0
    limit: float = 8.0
    kill_broker: float = 60.0
    max_batch: int = 64
    # So long before the end no server is killed: the next one has to get ready.
    start_seconds: float = 30.0


def make_plan(shape: Shape) -> list[Action]:
    """In the order of their times; the same for the same shape, on every machine."""
    chance = random.Random(shape.seed)
    plan: list[Action] = []
    for model in range(shape.models):
        plan += _requests(chance, shape, model)
    for at in _times(chance, _RUSH_EVERY_SECONDS, shape.seconds):
        for model in chance.sample(range(shape.models), chance.randint(1, shape.models)):
            plan += _burst(chance, shape, model, at)
    for at in _times(chance, shape.kill, shape.seconds - shape.start_seconds):
        model = chance.randrange(shape.models)
        plan += _perhaps_busy(chance, shape, model, at)
        plan.append(Action(at, "kill", model))
    for at in _times(chance, shape.stop, shape.seconds - 5):
        model = chance.randrange(shape.models)
        plan += _perhaps_busy(chance, shape, model, at)
        seconds = math.exp(chance.uniform(math.log(0.2), math.log(5.0)))
        plan.append(Action(at, "stop", model, seconds=seconds))
    for at in _times(chance, shape.reclaim, shape.seconds):
        part = chance.choice((0.0, chance.uniform(0.05, 1.0)))
        model = chance.randrange(shape.models)
        plan.append(Action(at, "reclaim", model, part, chance.uniform(0.05, 3.0)))
    for at in _times(chance, shape.limit, shape.seconds - 5):
        part = chance.choice((chance.uniform(0.1, 0.9), chance.uniform(1.5, 3.0)))
        model = chance.randrange(shape.models)
        plan.append(Action(at, "limit", model, part, chance.uniform(0.1, 2.0)))
    for at in _times(chance, shape.kill_broker, shape.seconds - 5):
        plan.append(Action(at, "kill_broker", seconds=chance.uniform(0.0, 0.1)))
    return sorted(plan)


def _times(chance: random.Random, mean: float, end: float) -> Iterator[float]:
    """Apart by half to one and a half times the mean."""
    at = 0.0
    while mean > 0:
        at += mean * chance.uniform(0.5, 1.5)
        if at >= end:
            return
        yield at


def _perhaps_busy(chance: random.Random, shape: Shape, model: int, at: float) -> list[Action]:
    """Every other time the model is asked just before."""
    if chance.random() < 0.5:
        return []
    return _burst(chance, shape, model, max(0.0, at - chance.uniform(0.0, 0.1)))


def _requests(chance: random.Random, shape: Shape, model: int) -> Iterator[Action]:
    at = 0.0
    while True:
        mean = _LONG_IDLE_SECONDS if chance.random() < _LONG_PART else _IDLE_SECONDS
        at += chance.expovariate(1 / mean)
        if at >= shape.seconds:
            return
        burst = _burst(chance, shape, model, at)
        yield from burst
        at = burst[-1].at


def _burst(chance: random.Random, shape: Shape, model: int, at: float) -> list[Action]:
    sizes = [1 << power for power in range(shape.max_batch.bit_length())]
    weights = [_BATCH_FALLOFF**power for power in range(len(sizes))]
    burst = []
    for _ in range(chance.randint(1, _MOST_IN_A_BURST)):
        burst.append(Action(at, "request", model, chance.choices(sizes, weights)[0]))
        at += chance.expovariate(_BURST_RATE)
    return burst
