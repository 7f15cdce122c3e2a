"""Figures of a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from load.answer import Answer
from load.quantile import quantile


def latency(answers: Sequence[Answer]) -> dict[str, float] | None:
    """Quantiles, in milliseconds, of those that were served; None without any."""
    samples = [a.latency_ms for a in answers if a.ok]
    if not samples:
        return None
    return {
        "count": len(samples),
        "p50": quantile(samples, 0.50),
        "p90": quantile(samples, 0.90),
        "p99": quantile(samples, 0.99),
        "max": max(samples),
    }


def summarise(answers: Sequence[Answer]) -> dict[str, Any]:
    """Of any part of a replay's answers: all, a model's, a kind's."""
    served = [a for a in answers if a.ok]
    evicted = [a for a in served if a.met_evicted]
    waits = [a.wait_ms for a in evicted if a.wait_ms > 0]
    begin = min((a.due_ms for a in answers), default=0.0)
    end = max((a.due_ms + a.latency_ms for a in answers), default=0.0)
    errors = Counter(a.error for a in answers if not a.ok)
    return {
        "requests": len(answers),
        "ok": len(served),
        "refused": len(answers) - len(served),
        "wrong": sum(not a.right for a in answers),
        "met_evicted": len(evicted),
        "seconds": round((end - begin) / 1000, 3),
        "ok_per_second": round(len(served) / max((end - begin) / 1000, 1e-3), 3),
        "latency_ms": latency(answers),
        "resident_latency_ms": latency([a for a in served if not a.met_evicted]),
        "evicted_latency_ms": latency(evicted),
        "restore_wait_ms": (
            {"p50": quantile(waits, 0.5), "p99": quantile(waits, 0.99), "max": max(waits)}
            if waits
            else None
        ),
        "run_seconds": round(sum(a.run_ms for a in served) / 1000, 3),
        "late_p99_ms": quantile([a.late_ms for a in answers], 0.99) if answers else 0.0,
        "errors": dict(errors.most_common(5)),
    }


def by_model(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    parts: dict[str, list[Answer]] = {}
    for answer in answers:
        parts.setdefault(answer.model, []).append(answer)
    return dict(sorted(parts.items()))
