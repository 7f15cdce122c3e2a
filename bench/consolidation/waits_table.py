"""The waits of requests, as a table: by whether they met their program's memory, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conditions import in_gib
from load.answer import Answer
from load.quantile import quantile
from waits import AT_ONCE, FULL_POOL, NO_WAKE, PARTS, RESIDENT, Waits

# Of what an answer after a wake may take beyond alone, in copies of what came back.
GOALS = {AT_ONCE: 1.3, FULL_POOL: 2.7}
_SLOWEST = 3

Pair = tuple[Answer, Waits]


def summary(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Figures of each kind, and of all; those that were served."""
    served = [pair for pair in pairs if pair[0].ok]
    found: dict[str, Any] = {}
    for kind in (RESIDENT, AT_ONCE, FULL_POOL, NO_WAKE):
        part = [pair for pair in served if pair[1].kind == kind]
        if part:
            found[kind] = _figures(part)
    if served:
        found["all"] = _figures(served)
        slowest = sorted(served, key=lambda pair: -pair[0].latency_ms)[:_SLOWEST]
        found["slowest"] = [_slow(*pair) for pair in slowest]
    return found


def _figures(pairs: Sequence[Pair]) -> dict[str, Any]:
    times = [answer.latency_ms for answer, _ in pairs]
    p99 = quantile(times, 0.99)
    tail = [waits for answer, waits in pairs if answer.latency_ms >= p99]
    return {
        "count": len(pairs),
        "p50": quantile(times, 0.5),
        "p99": p99,
        "max": max(times),
        "most_back_bytes": max(waits.back_bytes for _, waits in pairs),
        "tail_count": len(tail),
        "tail_ms": {
            part: round(sum(waits.parts[part] for waits in tail) / len(tail), 3)
            for part in PARTS
        },
    }


def _slow(answer: Answer, waits: Waits) -> dict[str, Any]:
    return {
        "model": answer.model,
        "batch": answer.batch,
        "due_ms": answer.due_ms,
        "latency_ms": answer.latency_ms,
        "kind": waits.kind,
        "parts": dict(waits.parts),
        "back_bytes": waits.back_bytes,
        "others_out_bytes": waits.others_out_bytes,
        "others_in_bytes": waits.others_in_bytes,
    }


def table(found: dict[str, Any]) -> str:
    """Of a summary."""
    head = ["requests", "count", "p50 ms", "p99 ms", "worst", "the slowest 1 %", *PARTS]
    lines = [_row(head), _row(["---"] * len(head))]
    for kind, figures in found.items():
        if kind == "slowest":
            continue
        times = [f"{figures[key]:.1f}" for key in ("p50", "p99", "max")]
        parts = [f"{figures['tail_ms'][part]:.1f}" for part in PARTS]
        lines.append(_row([kind, str(figures["count"]), *times, str(figures["tail_count"]), *parts]))
    return "\n".join([*lines, *(slow_line(slow) for slow in found.get("slowest", ()))])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def slow_line(slow: dict[str, Any]) -> str:
    parts = " + ".join(f"{part} {slow['parts'][part]:.1f}" for part in PARTS)
    text = (
        f"slow: {slow['latency_ms']:.1f} ms = {parts}; {slow['model']}, batch {slow['batch']}, "
        f"due at {slow['due_ms'] / 1000:.1f} s, {slow['kind']}"
    )
    if slow["back_bytes"]:
        text += f", {in_gib(slow['back_bytes'])} came back"
    return text + (
        f"; meanwhile {in_gib(slow['others_out_bytes'])} of others left, "
        f"{in_gib(slow['others_in_bytes'])} came back"
    )


def goals(
    found: dict[str, Any], alone_p99_ms: float, bytes_per_ms: float | None, whose: str
) -> list[dict[str, Any]]:
    """p99 after a wake, where a plain copy was measured: the largest wake is what is copied."""
    if bytes_per_ms is None:
        return []
    judged = []
    for kind, times in GOALS.items():
        if kind not in found:
            continue
        figures = found[kind]
        copy = figures["most_back_bytes"] / bytes_per_ms
        bound = alone_p99_ms + times * copy
        judged.append(
            {
                "goal": f"{whose}: p99 of those that met an evicted model, {kind}, within alone "
                f"and {times} copies",
                "reached": figures["p99"] <= bound,
                "said": f"{figures['p99']:.1f} ms, bound {bound:.1f} ({alone_p99_ms:.1f} and "
                f"{times} x {copy:.1f} for {in_gib(figures['most_back_bytes'])})",
            }
        )
    return judged
