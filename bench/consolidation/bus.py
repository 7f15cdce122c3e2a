"""How much of the bus the restores of one trial took: what came back, beside a plain copy's rate."""

from __future__ import annotations

from conditions import in_gib
from moves import Moves
from spans import Span


def restored_bytes(moves: Moves, within: Span) -> int:
    """Of the leases whose last byte came back then; the broker's other events are not counted."""
    begin, end = within
    ins = [moved for tenant in moves.values() for moved in tenant.ins]
    return sum(moved.nbytes for moved in ins if begin <= moved.end <= end)


def said(nbytes: int, seconds: float, copy_bytes_per_ms: float) -> str:
    part = nbytes / (seconds * 1e3 * copy_bytes_per_ms)
    return f"{in_gib(nbytes)} came back in {seconds:.0f} s, {part * 100:.1f} % of the bus"
