"""The waits of each request: its time is cut at the ends of what the broker says it did.

A moment that several names fit has the first of them:

copy   memory of its program is on its way back: slabs are made, filled and mapped
room   its program has asked for its memory, and others' is on its way out or being trimmed
turn   its program has asked, and nobody's memory is on its way out: what of its own is still
       leaving, its place in the broker's queue, and what the program does before its first call
grow   a request of its program for more memory is with the broker, or found none and is to be
       made again
queue  it stands behind another request in its own server
rest   all else: its work, the GPU's time that others have, the way there and back
"""

from __future__ import annotations

import json
import pathlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from load.answer import Answer
from moves import Moves, Tenant, Wake, between, others, spans_of
from spans import Span, length, split, union

PARTS = ("copy", "room", "turn", "grow", "queue", "rest")
# Of a request that met an evicted program.
AT_ONCE, FULL_POOL, NO_WAKE = "room at once", "full pool", "no wake seen"
RESIDENT = "resident"


@dataclass(frozen=True)
class Waits:
    """Of one request; milliseconds."""

    kind: str  # RESIDENT, AT_ONCE, FULL_POOL or NO_WAKE
    parts: Mapping[str, float]
    back_bytes: int = 0  # came back to its program meanwhile
    others_out_bytes: int = 0  # of others, that left meanwhile
    others_in_bytes: int = 0  # of others, that came back meanwhile


@dataclass(frozen=True)
class _Asked:
    """A wake that a request is known to have asked for."""

    wake: Wake
    asked: float
    full_pool: bool  # what others had was taken for it, or for somebody before it


def waits_of(answers: Sequence[Answer], moves: Moves) -> list[Waits]:
    """One for each answer."""
    by_model: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_model[answer.model].append(answer)
    found: dict[int, Waits] = {}
    for model, own in by_model.items():
        tenant, beside = moves.get(model, Tenant()), others(moves, model)
        asked = _asked(own, tenant, beside)
        spans = _spans(asked, tenant, beside)
        for answer in own:
            found[id(answer)] = _waits(answer, spans, asked, tenant, beside)
    return [found[id(answer)] for answer in answers]


def _asked(own: Iterable[Answer], tenant: Tenant, beside: Sequence[Tenant]) -> list[_Asked]:
    """Wakes with the time at which the request that was at work then asked for them.

    It is the time at which its turn came, or that at which its program's memory last began to
    leave, or was back, in the middle of it.
    """
    at_work = [a for a in own if a.began_at > 0]
    found = []
    for wake in tenant.wakes:
        askers = [a.began_at for a in at_work if a.began_at <= wake.granted <= end_of(a)]
        if not askers:
            found.append(_Asked(wake, wake.granted, False))
            continue
        left = [out.begin for out in tenant.outs if out.begin <= wake.granted]
        came = [before.back for before in tenant.wakes if before.back <= wake.granted]
        asked = max(askers + left + came)
        freed = any(
            asked < end <= wake.complete
            for other in beside
            for end in [*(out.end for out in other.outs), *(trim[1] for trim in other.trims)]
        )
        found.append(_Asked(wake, asked, freed))
    return found


def _spans(
    asked: Sequence[_Asked], tenant: Tenant, beside: Sequence[Tenant]
) -> dict[str, list[Span]]:
    """By the name of a part, for all requests of a tenant."""
    freeing = union(
        span for other in beside for span in [*spans_of(other.outs), *other.trims]
    )
    waiting = union((one.asked, one.wake.complete) for one in asked)
    room, turn = split(waiting, freeing)
    return {
        "copy": spans_of(tenant.ins),
        "room": room,
        "turn": turn,
        "grow": union(tenant.grows),
    }


def _waits(
    answer: Answer,
    spans: Mapping[str, Sequence[Span]],
    asked: Sequence[_Asked],
    tenant: Tenant,
    beside: Sequence[Tenant],
) -> Waits:
    begin, end = begin_of(answer), end_of(answer)
    queued = [(answer.began_at - answer.queue_ms / 1000, answer.began_at)]
    retried = [(answer.began_at, answer.began_at + answer.retried_ms / 1000)]
    own = {"queue": queued, "grow": retried}
    pieces: list[Span] = [(begin, end)]
    parts = {}
    for part in PARTS[:-1]:
        inside, pieces = split(pieces, [*spans.get(part, ()), *own.get(part, ())])
        parts[part] = round(length(inside) * 1000, 3)
    parts["rest"] = round(length(pieces) * 1000, 3)
    wakes = [one for one in asked if one.asked < end and one.wake.back > begin]
    return Waits(
        kind=_kind(answer, wakes),
        parts=parts,
        back_bytes=sum(one.wake.nbytes for one in wakes),
        others_out_bytes=sum(between(other.outs, begin, end) for other in beside),
        others_in_bytes=sum(between(other.ins, begin, end) for other in beside),
    )


def _kind(answer: Answer, wakes: Sequence[_Asked]) -> str:
    if not answer.met_evicted:
        return RESIDENT
    if not wakes:
        return NO_WAKE
    return FULL_POOL if any(one.full_pool for one in wakes) else AT_ONCE


def begin_of(answer: Answer) -> float:
    """When it was due: a Unix time."""
    return answer.sent_at - answer.late_ms / 1000


def end_of(answer: Answer) -> float:
    return begin_of(answer) + answer.latency_ms / 1000


def write_waits(
    place: pathlib.Path, answers: Sequence[Answer], waits: Sequence[Waits]
) -> None:
    """JSON lines, in the order of the answers."""
    with place.open("w") as out:
        for answer, wait in zip(answers, waits):
            who = {"model": answer.model, "batch": answer.batch, "due_ms": answer.due_ms}
            out.write(json.dumps({**who, "latency_ms": answer.latency_ms, **asdict(wait)}) + "\n")
