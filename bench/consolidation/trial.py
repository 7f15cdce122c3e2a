"""One trial: K models in one mode are loaded, asked once for every batch, and replayed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import waits_table
from conditions import Conditions
from fleet import Fleet
from load.answer import Answer, write_answers
from load.replay import replay
from load.summary import by_model, summarise
from memory_sampler import MemorySampler
from model_servers.model_server import ModelServer
from waits import Waits


@dataclass
class Trial:
    mode: str
    models: int
    not_loaded: dict[str, str]
    refused_first: dict[str, str]  # by model: why its first round was refused
    load_seconds: float
    first_round_seconds: float
    answers: list[Answer] = field(default_factory=list)
    memory: dict[str, float] = field(default_factory=dict)
    most_held: dict[str, int] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()  # they take turns
    seed: str = ""  # of the trace
    # The sums that answers have to have, by model and batch.
    expected: dict[tuple[str, int], str] = field(default_factory=dict)
    waits: list[Waits] = field(default_factory=list)  # one an answer, where a broker said them
    missed_events: int = 0  # of the broker's, that the waits are without
    restored_bytes: int | None = None  # while it was replayed, as the same events say

    def pairs(self) -> list[waits_table.Pair]:
        return list(zip(self.answers, self.waits))

    def served(self) -> list[str]:
        """Models that were never refused and never wrong."""
        names = [f"m{number:02d}" for number in range(self.models)]
        bad = {*self.not_loaded, *self.refused_first}
        bad |= {a.model for a in self.answers if not a.ok or not a.right}
        return [name for name in names if name not in bad]

    def all_served(self) -> bool:
        return len(self.served()) == self.models

    def _kind(self, name: str) -> str:
        return self.kinds[int(name[1:]) % len(self.kinds)] if self.kinds else ""

    def as_json(self) -> dict[str, Any]:
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del found["answers"], found["expected"], found["waits"]
        found["served"] = len(self.served())
        if self.answers:
            found["all"] = summarise(self.answers)
            found["by_model"] = {
                name: {"kind": self._kind(name), **summarise(part)}
                for name, part in by_model(self.answers).items()
            }
        if self.waits:
            found["waited_for"] = waits_table.summary(self.pairs())
        return found


def first_round(
    servers: Sequence[ModelServer], batches: Sequence[int]
) -> tuple[dict[tuple[str, int], str], dict[str, str]]:
    """Every batch once, before anything else: the expected sums, and why some are missing.

    The largest comes first: whether a model can serve it at all is then known with the least
    that other batches have left behind.
    """
    expected: dict[tuple[str, int], str] = {}
    refused: dict[str, str] = {}
    for server in servers:
        for batch in sorted(batches, reverse=True):
            status, said = server.ask("POST", "/infer", {"batch": batch})
            if status == 200:
                expected[server.name, batch] = str(said["sum"])
            else:
                refused[server.name] = str(said.get("error", status))
                break
    return expected, refused


def run_trial(
    conditions: Conditions,
    fleet: Fleet,
    mode: str,
    models: int,
    share_bytes: int | None = None,
    expected: dict[tuple[str, int], str] | None = None,
    replay_anyway: bool = False,
    held: Callable[[], int] | None = None,
) -> Trial:
    """Not replayed when a model is refused before, unless `replay_anyway`.

    `held`: the bytes that all servers hold, where they do not know it themselves.
    """
    servers = fleet.servers[:models]
    began = time.monotonic()
    not_loaded = fleet.load(servers, share_bytes)
    loaded = time.monotonic()
    asked = [] if expected else [s for s in servers if s.name not in not_loaded]
    learned, refused = first_round(asked, conditions.batches)
    trial = Trial(
        mode=mode,
        models=models,
        kinds=conditions.servers.kinds,
        seed=conditions.trace.header.get("seed", ""),
        expected=expected or learned,
        not_loaded=not_loaded,
        refused_first=refused,
        load_seconds=round(loaded - began, 2),
        first_round_seconds=round(time.monotonic() - loaded, 2),
    )
    if trial.all_served() or replay_anyway:
        trace = conditions.trace.of([s.name for s in servers], conditions.seconds)
        with MemorySampler(servers, conditions.card_bytes, held) as sampler:
            trial.answers = replay(trace, fleet.targets(), trial.expected)
        trial.memory = sampler.result()
        trial.most_held = sampler.most_by_model
        trial.peaks = {s.name: int(s.stats()["peak_bytes"]) for s in servers}
        write_answers(
            conditions.out / f"{mode}-{models}-seed-{trial.seed}.jsonl", trial.answers
        )
    return trial
