"""The broker's events, all of them: `gmb watch` beside a phase.

The log leaves out some of what clients cause; a watcher is told of each event, or how many it
missed.
"""

from __future__ import annotations

import datetime
import json
import pathlib
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass

from local_broker import Broker, end

_TIME = re.compile(r"^(\d+-\d+-\d+T\d+:\d+:\d+)(\.\d+)?Z$")
_PATIENCE = 30.0
_MARK = "tenant_changed"
_SESSIONS = 64  # more than a server has


@dataclass(frozen=True)
class Event:
    at: float  # Unix time
    kind: str
    tenant: str = ""
    lease: int = 0
    nbytes: int = 0
    took: float = 0.0  # seconds
    missed: int = 0  # that many before it are not known


def unix_time(text: str) -> float:
    """Of a time with any number of digits behind the second."""
    match = _TIME.match(text)
    if match is None:
        raise ValueError(f"no time: {text!r}")
    whole = datetime.datetime.fromisoformat(match[1] + "+00:00").timestamp()
    return whole + float(match[2] or 0)


def read_events(lines: Iterable[str]) -> list[Event]:
    """Of `gmb --output json watch`. A last line that is not whole is left out."""
    return [_event(json.loads(line)) for line in lines if line.endswith("\n")]


def _event(said: dict[str, object]) -> Event:
    def number(key: str) -> float:
        return float(str(said.get(key) or 0))

    return Event(
        at=unix_time(str(said["at"])),
        kind=str(said["kind"]),
        tenant=str(said.get("tenant") or ""),
        lease=int(number("lease_id")),
        nbytes=int(number("bytes")),
        took=number("took"),
        missed=int(number("missed")),
    )


class Watching:
    """`gmb watch` into a file, from the beginning of a `with` to its end."""

    def __init__(self, broker: Broker, marked: str, place: pathlib.Path) -> None:
        """`marked`: a tenant whose most sessions are changed as a mark."""
        self._broker = broker
        self._marked = marked
        self._place = place
        self._sessions = _SESSIONS
        with place.open("wb") as out:
            self._process = subprocess.Popen(
                broker.command("--output", "json", "watch"), stdout=out
            )

    def __enter__(self) -> Watching:
        try:
            # It may not be listening at the first mark.
            deadline = time.monotonic() + _PATIENCE
            while not self._marks():
                self._mark()
                self._look_again(deadline)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)

    def events(self, since: float, until: float) -> list[Event]:
        """Those between the two times, when all of them are written."""
        deadline = time.monotonic() + _PATIENCE
        before = self._marks()
        self._mark()
        while self._marks() == before:
            self._look_again(deadline)
        with self._place.open() as lines:
            return [event for event in read_events(lines) if since <= event.at <= until]

    def _mark(self) -> None:
        self._sessions += 1  # what is as it was is no change
        self._broker.ask(
            "tenant", "set", self._marked, "--max-sessions", str(self._sessions)
        )

    def _marks(self) -> int:
        return self._place.read_text().count(f'"{_MARK}"')

    def _look_again(self, deadline: float) -> None:
        if self._process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"gmb watch does not say what happens: see {self._place}")
        time.sleep(0.02)  # between two looks
