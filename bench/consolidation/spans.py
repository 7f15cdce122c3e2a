"""Spans of time, and parts of them."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[float, float]


def union(spans: Iterable[Span]) -> list[Span]:
    """The same times, in order and apart."""
    found: list[Span] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def split(pieces: Iterable[Span], spans: Iterable[Span]) -> tuple[list[Span], list[Span]]:
    """The parts of the pieces that lie in one of the spans, and those that do not."""
    inside: list[Span] = []
    outside: list[Span] = []
    apart = union(spans)
    for begin, end in pieces:
        for low, high in apart:
            if high <= begin:
                continue
            if low >= end:
                break
            if low > begin:
                outside.append((begin, low))
            inside.append((max(begin, low), min(end, high)))
            begin = min(end, high)
        if begin < end:
            outside.append((begin, end))
    return inside, outside


def length(spans: Iterable[Span]) -> float:
    """Of spans that are apart."""
    return sum(end - begin for begin, end in spans)
