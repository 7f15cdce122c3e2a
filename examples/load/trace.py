"""Request traces: small text files of `time_ms model batch`.

Lines that begin with # are the header: `# key: value`. Requests are in the order of
their times. A model's requests do not depend on which other models a replay takes.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Request:
    """One request, `time_ms` after the replay's begin."""

    time_ms: float
    model: str
    batch: int


@dataclass(frozen=True)
class Trace:
    requests: tuple[Request, ...]
    header: dict[str, str] = field(default_factory=dict)

    def models(self) -> list[str]:
        return sorted({request.model for request in self.requests})

    def of(self, models: Iterable[str], seconds: float | None = None) -> Trace:
        """The part for these models, before `seconds`."""
        wanted = set(models)
        end_ms = float("inf") if seconds is None else seconds * 1000
        kept = (r for r in self.requests if r.model in wanted and r.time_ms < end_ms)
        return Trace(tuple(kept), dict(self.header))

    def squeezed(self, gap_ms: float) -> Trace:
        """Times in which nothing is asked for are cut to `gap_ms`."""
        requests, now, before = [], 0.0, 0.0
        for request in self.requests:
            now += min(request.time_ms - before, gap_ms)
            before = request.time_ms
            requests.append(Request(now, request.model, request.batch))
        return Trace(tuple(requests), dict(self.header))


def one_after_another(parts: Iterable[Trace], gap_ms: float) -> Trace:
    """Each part begins `gap_ms` after the last request of the one before."""
    requests: list[Request] = []
    for part in parts:
        start = requests[-1].time_ms + gap_ms if requests else 0.0
        requests += [Request(start + r.time_ms, r.model, r.batch) for r in part.requests]
    return Trace(tuple(requests))


def read_trace(path: pathlib.Path | str) -> Trace:
    """Raises ValueError, naming the line, for a file that is no trace."""
    header: dict[str, str] = {}
    requests: list[Request] = []
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line.startswith("#"):
            key, found, value = line[1:].partition(":")
            if found:
                header[key.strip()] = value.strip()
            continue
        try:
            time_ms, model, batch = line.split()
            request = Request(float(time_ms), model, int(batch))
        except ValueError:
            raise ValueError(f"{path}:{number}: not `time_ms model batch`: {line!r}") from None
        if request.batch < 1 or request.time_ms < 0:
            raise ValueError(f"{path}:{number}: a batch below 1, or a time below 0")
        if requests and request.time_ms < requests[-1].time_ms:
            raise ValueError(f"{path}:{number}: earlier than the line before")
        requests.append(request)
    return Trace(tuple(requests), header)


def write_trace(path: pathlib.Path | str, trace: Trace) -> None:
    lines = [f"# {key}: {value}" for key, value in trace.header.items()]
    lines += [f"{r.time_ms:.1f} {r.model} {r.batch}" for r in trace.requests]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")
