"""Running alone: each model's own requests, with the whole device to itself.

One server of each kind stands for the models of that kind, which differ in nothing but the
values of their weights. It is asked what the K models are asked in the trials, model after
model, with the times between bursts cut short.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conditions import Conditions
from fleet import Fleet
from load.answer import Answer, write_answers
from load.bursts import model_name
from load.replay import replay
from load.trace import Request, Trace, one_after_another
from trial import first_round

_GAP_MS = 150.0


@dataclass
class Alone:
    answers: list[Answer]
    peaks: dict[str, int]  # by kind: the most device memory held
    by_seed: dict[str, list[Answer]] = field(default_factory=dict)

    def with_more(self, more: Alone) -> Alone:
        """The same requests once more, at another time."""
        seeds = {**self.by_seed, **more.by_seed}
        return Alone(
            self.answers + more.answers,
            self.peaks,
            {seed: self.by_seed.get(seed, []) + more.by_seed.get(seed, []) for seed in seeds},
        )


def _requests_of_kind(
    conditions: Conditions, whole: Trace, kind: str, models: int, server: str
) -> Trace:
    parts = []
    for number in range(models):
        if conditions.servers.kind_of(number) == kind:
            own = whole.of([model_name(number)], conditions.seconds).squeezed(_GAP_MS)
            parts.append(Trace(tuple(Request(r.time_ms, server, r.batch) for r in own.requests)))
    return one_after_another(parts, _GAP_MS)


def run_alone(conditions: Conditions, fleet: Fleet, models: int, name: str = "alone") -> Alone:
    """The first server of each kind, one after the other; `models`: whose requests."""
    alone = Alone([], {})
    for number, kind in enumerate(conditions.servers.kinds):
        server = fleet.servers[number]
        refused = fleet.load([server], None)
        expected, refused_first = first_round([server], conditions.batches)
        if refused or refused_first:
            raise RuntimeError(f"{kind} alone: {refused or refused_first}")
        for whole in (conditions.trace, *conditions.more_traces):
            trace = _requests_of_kind(conditions, whole, kind, models, server.name)
            answers = replay(trace, {server.name: server.target}, expected)
            alone.answers += answers
            alone.by_seed.setdefault(whole.header.get("seed", ""), []).extend(answers)
        alone.peaks[kind] = int(server.stats()["peak_bytes"])
        fleet.unload()
    write_answers(conditions.out / f"{name}.jsonl", alone.answers)
    return alone
