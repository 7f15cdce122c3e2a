"""How much of the bus the restores of one trial took: what came back, beside a plain copy's rate."""

from __future__ import annotations

from collections.abc import Sequence

from broker_events import Event
from conditions import in_gib
from spans import Span


def restored_bytes(events: Sequence[Event], within: Span) -> int:
    """Of the leases that were back then. Those whose contents may be lost count as any other."""
    begin, end = within
    return sum(e.nbytes for e in events if e.kind == "restored" and begin <= e.at <= end)


def said(nbytes: int, seconds: float, copy_bytes_per_ms: float) -> str:
    part = nbytes / (seconds * 1e3 * copy_bytes_per_ms)
    return f"{in_gib(nbytes)} came back in {seconds:.0f} s, {part * 100:.1f} % of the bus"
