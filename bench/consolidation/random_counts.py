"""The deeds of a random load, and what came of it."""

from __future__ import annotations

import pathlib
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from load.answer import Answer

_SHOWN_FAULTS = 40


@dataclass
class Counts:
    """From any thread, as far as faults and notes go."""

    out: pathlib.Path
    did: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)  # that had to be right
    excused: list[Answer] = field(default_factory=list)  # that failed and might
    starts: list[float] = field(default_factory=list)  # seconds until a server served again
    outages: list[float] = field(default_factory=list)  # seconds until a broker served again
    reclaimed_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)

    def note(self, text: str) -> None:
        with self._lock:
            self.notes.append(text)
        self.say(text)

    def fault(self, text: str) -> None:
        with self._lock, (self.out / "faults.txt").open("a") as log:
            self.faults.append(text)
            log.write(f"{time.time():.6f} {text}\n")
        if len(self.faults) <= _SHOWN_FAULTS:
            self.say(f"FAULT {text}")

    def as_json(self) -> dict[str, Any]:
        return {
            "did": dict(self.did),
            "requests": len(self.answers),
            "excused": len(self.excused),
            "starts_seconds": self.starts,
            "outages_seconds": self.outages,
            "reclaimed_bytes": self.reclaimed_bytes,
            "faults": self.faults,
            "notes": self.notes,
        }
