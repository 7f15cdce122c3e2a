"""Which requests met an evicted program: the broker says when memory came back to whom."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from broker_events import Event
from load.answer import Answer

# Unix times by tenant, at which a restore began or ended.
Restores = Mapping[str, Sequence[float]]

_LINE = re.compile(r"^(\S+)Z info (?:restore_started|restored) tenant=(\S+) ")


def times_of(events: Iterable[Event]) -> Restores:
    found: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event.kind in ("restore_started", "restored"):
            found[event.tenant].append(event.at)
    return found


def restores_of(log: pathlib.Path) -> Restores:
    """The same of a log, over all of a broker's lives."""
    found: dict[str, list[float]] = defaultdict(list)
    with log.open(errors="replace") as lines:
        for line in lines:
            if match := _LINE.match(line):
                at = datetime.datetime.fromisoformat(match[1] + "+00:00")
                found[match[2]].append(at.timestamp())
    return found


def mark_restores(answers: Sequence[Answer], restores: Restores) -> list[Answer]:
    """A program cannot say that it waited: one whose memory came back meanwhile did.

    It waited until the last of that was back.
    """
    return [_marked(answer, restores.get(answer.model, ())) for answer in answers]


def _marked(answer: Answer, times: Sequence[float]) -> Answer:
    meanwhile = [at for at in times if answer.sent_at <= at <= _end(answer)]
    if not meanwhile:
        return answer
    wait_ms = round((max(meanwhile) - answer.sent_at) * 1000, 3)
    return dataclasses.replace(answer, met_evicted=True, wait_ms=wait_ms)


def _end(answer: Answer) -> float:
    return answer.sent_at + (answer.latency_ms - answer.late_ms) / 1000
