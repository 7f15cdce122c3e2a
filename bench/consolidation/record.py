"""The record of a run so far: what a later phase needs of an earlier one, and the result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import figure
from alone import Alone
from conditions import MIB, Conditions, in_gib
from trial import Trial

# A peak is not quite the same each time: it depends on the order of the batches.
_SLACK = 1.03


@dataclass
class Record:
    conditions: Conditions
    # Models of an even split of the card: given, or what alone's peaks say of a given card.
    split: int | None = None
    alone: Alone | None = None
    alone_after: Alone | None = None  # the same once more, behind all else
    copy_bytes_per_ms: float | None = None  # of a plain copy to the device
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
        if trial.missed_events:
            self.note(f"{trial.missed_events} events of the broker are not in what was waited for")

    def add_alone_after(self, alone: Alone) -> None:
        self.alone_after = alone
        self.say(figure.alone_row(alone, "alone, after"))

    def both_alone(self) -> Alone | None:
        """Before and after together: the reference."""
        if self.alone is None or self.alone_after is None:
            return self.alone
        return self.alone.with_more(self.alone_after)

    def add_alone(self, alone: Alone, models: int) -> None:
        self.alone = alone
        peaks = ", ".join(f"{kind} {in_gib(n)}" for kind, n in alone.peaks.items())
        self.note(f"alone, the requests of {models} models; peaks: {peaks}")
        self.say(figure.alone_row(alone))
        self._settle_card(max(alone.peaks.values()))

    def _settle_card(self, peak_bytes: int) -> None:
        """Of the card and the split one is given; the largest peak says the other."""
        if self.conditions.card_bytes == 0:
            assert self.split is not None
            share = int(peak_bytes * _SLACK) // (2 * MIB) * (2 * MIB)
            self.conditions = replace(self.conditions, card_bytes=self.split * share)
            self.note(
                f"card {in_gib(self.conditions.card_bytes)}: {self.split} times the largest peak "
                f"and {(_SLACK - 1) * 100:.0f} %"
            )
        elif self.split is None:
            self.split = max(1, self.conditions.card_bytes // peak_bytes)
            self.note(f"an even split serves {self.split}")

    def models_alone(self, factors: Sequence[int]) -> int:
        """Of how many models a model alone is asked the requests: the fewest that gmb gets."""
        # A split that is not known yet will be of about six.
        return min(factors) * (self.split or 6)

    def split_models(self) -> int:
        if self.split is None or self.conditions.card_bytes == 0:
            raise RuntimeError("without the mode alone, --card-mib and --split are needed")
        return self.split
