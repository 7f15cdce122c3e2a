"""The result of a random load: printed, and written below OUT."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from broker_moves import moves_of
from conditions import Conditions, in_gib
from load.answer import Answer, write_answers
from load.quantile import quantile
from machine import machine
from random_counts import Counts
from restores import mark_restores, restores_of


def report(conditions: Conditions, counts: Counts, load_seconds: float) -> None:
    out, log = conditions.out, conditions.out / "gmbd.log"
    times, nbytes = moves_of(log) if log.exists() else (Counter(), Counter())
    if conditions.servers.unchanged and log.exists():  # such a server cannot say that it waited
        counts.answers = mark_restores(counts.answers, restores_of(log))
    write_answers(out / "answers.jsonl", counts.answers)
    write_answers(out / "excused.jsonl", counts.excused)
    seed = conditions.trace.header["seed"]
    result = {
        "seed": seed,
        "load_seconds": load_seconds,
        "machine": machine(conditions),
        **counts.as_json(),
        "events": dict(times),
        "event_bytes": dict(nbytes),
    }
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    lines = [*did_lines(counts), *request_table(counts.answers, conditions.servers.kinds)]
    for word in ("evicted", "restored"):
        lines.append(f"{word}: {times[word]} leases of {in_gib(nbytes[word])} in all")
    lines.append("events: " + ", ".join(f"{n} {word}" for word, n in sorted(times.items())))
    lines.append(f"seed {seed}, {load_seconds} s of load, {len(counts.faults)} faults")
    print("\n".join(lines), flush=True)


def did_lines(counts: Counts) -> list[str]:
    did = counts.did
    return [
        f"servers killed: {did['kill']}; served again after {_spread(counts.starts, 's')}; "
        f"loads refused and tried again: {did['load_refused']}, "
        f"starts without a broker, tried again: {did['start_repeated']}",
        f"servers stopped for 0.2 to 5 s: {did['stop']}",
        f"reclaims by an operator: {did['reclaim']}, of {in_gib(counts.reclaimed_bytes)} in all; "
        f"cut off by a broker's death: {did['reclaim_cut_off']}",
        f"limits changed and back: {did['limit_above']} above and {did['limit_below']} below "
        "what the server had",
        f"brokers killed: {did['kill_broker']}; the next one served after "
        f"{_spread(counts.outages, 's')}",
        f"left out, since the server was being started: {did['left_out']} of these, "
        f"{did['not_sent']} requests; since many requests were under way: {did['too_many']}",
        f"requests that failed with a server that was killed: {did['failed_with_server']}; while "
        f"no broker served for longer than a call waits: {did['failed_without_broker']}",
    ]


def request_table(answers: Sequence[Answer], kinds: Sequence[str]) -> list[str]:
    """By kind of model, which take turns."""
    lines = [
        "| kind | requests | ok | wrong | resident p50 ms | p99 ms | met evicted | p50 ms | p99 ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in (*dict.fromkeys(kinds), "all"):
        part = [a for a in answers if kind in ("all", kinds[int(a.model[1:]) % len(kinds)])]
        ok = [a for a in part if a.ok]
        away = [a.latency_ms for a in ok if a.met_evicted]
        there = [a.latency_ms for a in ok if not a.met_evicted]
        wrong = sum(not a.right for a in part)
        cells = (kind, len(part), len(ok), wrong, *_quantiles(there), len(away), *_quantiles(away))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def _quantiles(times: Sequence[float]) -> tuple[str, str]:
    if not times:
        return "-", "-"
    return f"{quantile(times, 0.5):.1f}", f"{quantile(times, 0.99):.1f}"


def _spread(values: Sequence[float], unit: str) -> str:
    if not values:
        return "-"
    return f"median {quantile(values, 0.5):.2f}, at most {max(values):.2f} {unit}"
