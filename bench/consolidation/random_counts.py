"""What a random load did and what came of it."""

from __future__ import annotations

import pathlib
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from conditions import in_gib
from load.answer import Answer
from load.quantile import quantile

_SHOWN_FAULTS = 40


@dataclass
class Counts:
    """From any thread, as far as faults and notes go."""

    out: pathlib.Path
    did: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)  # that had to be right
    excused: list[Answer] = field(default_factory=list)  # that failed and might
    starts: list[float] = field(default_factory=list)  # seconds until a server served again
    outages: list[float] = field(default_factory=list)  # seconds until a broker served again
    reclaimed_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)

    def note(self, text: str) -> None:
        with self._lock:
            self.notes.append(text)
        self.say(text)

    def fault(self, text: str) -> None:
        with self._lock, (self.out / "faults.txt").open("a") as log:
            self.faults.append(text)
            log.write(f"{time.time():.6f} {text}\n")
        if len(self.faults) <= _SHOWN_FAULTS:
            self.say(f"FAULT {text}")

    def as_json(self) -> dict[str, Any]:
        return {
            "did": dict(self.did),
            "requests": len(self.answers),
            "excused": len(self.excused),
            "starts_seconds": self.starts,
            "outages_seconds": self.outages,
            "reclaimed_bytes": self.reclaimed_bytes,
            "faults": self.faults,
            "notes": self.notes,
        }


def did_lines(counts: Counts) -> list[str]:
    did = counts.did
    lines = [
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
    return lines


def request_table(answers: Sequence[Answer], kinds: Sequence[str]) -> list[str]:
    """By kind of model, which take turns."""
    lines = [
        "| kind | requests | ok | wrong | resident: p50 ms | p99 ms | met evicted | p50 ms | p99 ms |",
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
