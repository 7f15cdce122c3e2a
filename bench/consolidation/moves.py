"""The moves of each program's memory: the spans that the broker's events are the ends of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from broker_events import Event
from spans import Span, union


@dataclass(frozen=True)
class Moved:
    """One lease, on its way out or back."""

    begin: float
    end: float
    nbytes: int


@dataclass
class Wake:
    """All leases of a tenant that came back together."""

    granted: float  # the first one's bytes were the tenant's: slabs are made and filled from here
    complete: float  # the last one's bytes were
    back: float
    nbytes: int


@dataclass
class Tenant:
    outs: list[Moved] = field(default_factory=list)
    ins: list[Moved] = field(default_factory=list)
    grows: list[Span] = field(default_factory=list)  # from a request for memory to its grant
    trims: list[Span] = field(default_factory=list)  # from being asked to the answer
    wakes: list[Wake] = field(default_factory=list)


Moves = dict[str, Tenant]

# A request that has to wait is told so when it is asked, but for rounding.
_SAME_TURN = 0.001


def moves_of(events: Sequence[Event]) -> Moves:
    """Of events in order. A move that has not ended is left out."""
    tenants: Moves = defaultdict(Tenant)
    going: dict[int, Event] = {}
    coming: dict[int, Event] = {}
    trimming: dict[str, float] = {}
    waiting: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if not event.tenant:
            continue
        tenant = tenants[event.tenant]
        if event.kind == "evict_started":
            going[event.lease] = event
        elif event.kind == "restore_started":
            coming[event.lease] = event
        elif event.kind in ("evicted", "evict_failed"):
            _end_move(tenant.outs, going.pop(event.lease, None), event.at)
        elif event.kind in ("restored", "restore_failed"):
            _end_move(tenant.ins, coming.pop(event.lease, None), event.at)
        elif event.kind in ("lease_released", "lease_reclaimed"):
            # Its program gave it up in the middle.
            _end_move(tenant.outs, going.pop(event.lease, None), event.at)
            _end_move(tenant.ins, coming.pop(event.lease, None), event.at)
        elif event.kind == "acquire_waiting":
            waiting[event.tenant].append(event)
        elif event.kind == "acquire_denied":
            if asked := _asked_for(waiting[event.tenant], event.nbytes):
                tenant.grows.append((asked.at, event.at))
        elif event.kind == "lease_granted":
            asked_at = event.at - event.took
            tenant.grows.append((asked_at, event.at))
            still = [one for one in waiting[event.tenant] if abs(one.at - asked_at) > _SAME_TURN]
            waiting[event.tenant] = still
        elif event.kind == "trim_asked":
            trimming[event.tenant] = event.at
        elif event.kind == "trim_answered" and event.tenant in trimming:
            tenant.trims.append((trimming.pop(event.tenant), event.at))
    for tenant in tenants.values():
        tenant.wakes = _wakes(tenant.ins)
    return dict(tenants)


def _asked_for(waiting: list[Event], nbytes: int) -> Event | None:
    """The oldest of that size, which no longer waits. None: it was refused at once."""
    for place, event in enumerate(waiting):
        if event.nbytes == nbytes:
            return waiting.pop(place)
    return None


def _end_move(into: list[Moved], began: Event | None, end: float) -> None:
    if began is not None:
        into.append(Moved(began.at, end, began.nbytes))


def _wakes(ins: Sequence[Moved]) -> list[Wake]:
    """Leases whose ways back overlap are one wake."""
    wakes: list[Wake] = []
    for moved in sorted(ins, key=lambda moved: moved.begin):
        if wakes and moved.begin <= wakes[-1].back:
            wakes[-1].complete = moved.begin
            wakes[-1].back = max(wakes[-1].back, moved.end)
            wakes[-1].nbytes += moved.nbytes
        else:
            wakes.append(Wake(moved.begin, moved.begin, moved.end, moved.nbytes))
    return wakes


def spans_of(moved: Sequence[Moved]) -> list[Span]:
    return union((one.begin, one.end) for one in moved)


def others(moves: Moves, tenant: str) -> list[Tenant]:
    return [other for name, other in moves.items() if name != tenant]


def between(moved: Sequence[Moved], begin: float, end: float) -> int:
    """The bytes of those that ended then."""
    return sum(one.nbytes for one in moved if begin < one.end <= end)
