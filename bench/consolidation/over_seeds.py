"""One figure over the traces of several seeds: pooled, with its interval, the median, the worst."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Any

import waits_table
from alone import Alone
from load.answer import Answer
from load.quantile import quantile
from trial import Trial

_RESAMPLES = 1000


def _p99(answers: Sequence[Answer]) -> float:
    return quantile([a.latency_ms for a in answers if a.ok], 0.99)


def _interval(mine: Sequence[Answer], alone: Sequence[Answer]) -> tuple[float, float]:
    """95 %, by drawing requests again; the same each time."""
    chance = random.Random(1)
    ratios = sorted(
        _p99(chance.choices(mine, k=len(mine))) / _p99(chance.choices(alone, k=len(alone)))
        for _ in range(_RESAMPLES)
    )
    return ratios[int(0.025 * _RESAMPLES)], ratios[int(0.975 * _RESAMPLES) - 1]


def over_seeds(alone: Alone, trials: Sequence[Trial]) -> dict[str, Any] | None:
    """None unless the same models were asked by several seeds."""
    played = [t for t in trials if t.mode == "gmb" and t.answers]
    most = max((t.models for t in played), default=0)
    played = [t for t in played if t.models == most]
    if len(played) < 2:
        return None
    resident = {t.seed: [a for a in t.answers if a.ok and not a.met_evicted] for t in played}
    pooled = [a for answers in resident.values() for a in answers]
    ratios = {seed: _p99(part) / _p99(alone.by_seed[seed]) for seed, part in resident.items()}
    evicted = [a for t in played for a in t.answers if a.ok and a.met_evicted]
    pairs = [pair for t in played for pair in t.pairs()]
    low, high = _interval(pooled, alone.answers)
    return {
        "models": most,
        "resident_p99_ms": _p99(pooled),
        "alone_p99_ms": _p99(alone.answers),
        "ratio": _p99(pooled) / _p99(alone.answers),
        "interval": [low, high],
        "ratio_by_seed": ratios,
        "median": statistics.median(ratios.values()),
        "worst": max(ratios.values()),
        "evicted": len(evicted),
        "evicted_p50_ms": quantile([a.latency_ms for a in evicted], 0.5) if evicted else None,
        "evicted_p99_ms": _p99(evicted) if evicted else None,
        "waited_for": waits_table.summary(pairs),
        "wrong": sum(not a.right for t in played for a in t.answers),
        "refused": sum(not a.ok for t in played for a in t.answers),
        "requests": sum(len(t.answers) for t in played),
    }


def pooled_goals(
    figure: dict[str, Any], copy_bytes_per_ms: float | None
) -> list[dict[str, Any]]:
    whose = f"{figure['models']} models, all seeds"
    return waits_table.goals(
        figure["waited_for"], figure["alone_p99_ms"], copy_bytes_per_ms, whose
    )


def said(figure: dict[str, Any]) -> str:
    by_seed = ", ".join(f"{seed}: {ratio:.2f}" for seed, ratio in figure["ratio_by_seed"].items())
    evicted = figure["evicted_p99_ms"]
    return (
        f"{figure['models']} models over {len(figure['ratio_by_seed'])} seeds, "
        f"{figure['requests']} requests, {figure['refused']} refused, {figure['wrong']} wrong\n"
        f"  resident p99 {figure['resident_p99_ms']:.1f} ms beside {figure['alone_p99_ms']:.1f} "
        f"alone: {figure['ratio']:.2f}x (95 %: {figure['interval'][0]:.2f} to "
        f"{figure['interval'][1]:.2f}); by seed {by_seed}; median {figure['median']:.2f}, "
        f"worst {figure['worst']:.2f}\n"
        f"  met evicted: {figure['evicted']} requests"
        + (f", p50 {figure['evicted_p50_ms']:.1f} ms, p99 {evicted:.1f} ms" if evicted else "")
        + ("\n" + waits_table.table(figure["waited_for"]) if figure["waited_for"] else "")
    )
