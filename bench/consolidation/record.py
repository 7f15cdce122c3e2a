"""What a run has found so far: what a later phase needs of an earlier one, and the result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import figure
from alone import Alone
from conditions import Conditions, in_gib
from trial import Trial


@dataclass
class Record:
    conditions: Conditions
    split: int | None = None  # models of an even split of the card; alone's peaks say it
    alone: Alone | None = None
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.say(text)

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        self.say(figure.row(trial))

    def add_alone(self, alone: Alone, models: int) -> None:
        self.alone = alone
        peaks = ", ".join(f"{kind} {in_gib(n)}" for kind, n in alone.peaks.items())
        self.note(f"alone, the requests of {models} models; peaks: {peaks}")
        self.say(figure.alone_row(alone))

    def split_models(self) -> int:
        """How many an even split of the card serves: each has the largest peak."""
        if self.split is None:
            if self.alone is None:
                raise RuntimeError("how many does a split serve? --split, or the mode alone")
            self.split = self.conditions.card_bytes // max(self.alone.peaks.values())
        return max(1, self.split)
