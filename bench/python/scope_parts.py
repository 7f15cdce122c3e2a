#!/usr/bin/env python3
"""Measures what the parts of a scope of gmb.torch add to a step, in turns of one process.

    scope_parts.py [--rounds 60] [--steps 25]

GMB_SOCKET_DIR is a broker, whose tenant b this is. Each variant's model is compiled in that
variant. Medians by the clock; after the arrow, of the rounds' differences to plain.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import gmb
import gmb.torch
import torch
from torch_models import make_input, make_model

Variants = dict[str, tuple[Callable[[], Any], Callable[[], Any]]]


def variants() -> Variants:
    """How a step is entered, and how its model is loaded."""
    gmb.torch.enable(tenant="b")
    gate = gmb.Client(tenant="b")
    gate.gate_on()
    nothing, own, leased = contextlib.nullcontext, torch.cuda.MemPool(), gmb.torch.active()
    gated = gmb.active(gate)
    return {
        "plain": (nothing, nothing),
        "plain again": (nothing, nothing),
        "autograd on this thread": (
            lambda: torch.autograd.set_multithreading_enabled(False), nothing),
        "torch's own MemPool": (lambda: torch.cuda.use_mem_pool(own), nothing),
        "the gate alone": (lambda: gated, nothing),
        "gmb.torch.active()": (lambda: leased, nothing),
        "the same, weights leased": (lambda: leased, gmb.torch.weights),
    }


def prepared(scope: Callable[[], Any], loading: Callable[[], Any], mode: str) -> Callable[[], None]:
    with loading():
        model = make_model(256, 6).cuda()
    with scope():
        x = make_input(1, 128, 256).cuda()
    work = {"empty": lambda x: None, "eager": model, "compiled": torch.compile(model)}[mode]

    def step() -> None:
        with scope():
            work(x)

    return step


def seconds(step: Callable[[], None], steps: int) -> float:
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def measure(scopes: Variants, mode: str, rounds: int, steps: int) -> None:
    ways = {name: prepared(*how, mode) for name, how in scopes.items()}
    for way in ways.values():
        seconds(way, 10)
    gc.collect()
    gc.freeze()
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            took[name].append(seconds(ways[name], steps) * 1e6)
    gc.unfreeze()
    for name, times in took.items():
        more = statistics.median(a - b for a, b in zip(times, took["plain"]))
        print(f"{mode:9} {name:36} {statistics.median(times):8.1f} us -> {more:+7.1f} us")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=60)
    options.add_argument("--steps", type=int, default=25)
    args = options.parse_args()
    torch._dynamo.config.recompile_limit = 64  # one for each variant
    with torch.inference_mode():
        torch.ones(1, device="cuda")
        scopes = variants()
        for mode in ("empty", "eager", "compiled"):
            measure(scopes, mode, args.rounds, args.steps)


if __name__ == "__main__":
    main()
