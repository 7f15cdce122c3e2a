"""Figures of rounds that were measured in turn: medians, and how sure their ratio is."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# A round: the peer's time and that of what is compared with it.
Pair = tuple[float, float]


@dataclass(frozen=True)
class Ratio:
    """The peer's median by the other's: throughput as a part of the peer's."""

    ratio: float
    low: float  # the interval that 95 of 100 resamplings are in
    high: float
    first_quartile: float  # of the rounds' own ratios
    third_quartile: float

    def __str__(self) -> str:
        return (
            f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}, "
            f"rounds {self.first_quartile:.3f} to {self.third_quartile:.3f})"
        )


def of_medians(pairs: Sequence[Pair]) -> float:
    return statistics.median(peer for peer, _ in pairs) / statistics.median(
        other for _, other in pairs
    )


def ratio(launches: Sequence[Sequence[Pair]], resamplings: int = 1000, seed: int = 1) -> Ratio:
    """Of all rounds together, and its bootstrapped interval.

    Processes differ for as long as they live (where their memory lies, which core they are
    on), so launches are drawn first and then the rounds of each: rounds of one launch are
    no independent witnesses.
    """
    everything = [pair for rounds in launches for pair in rounds]
    own = sorted(peer / other for peer, other in everything)
    draw = random.Random(seed)
    drawn = sorted(
        of_medians(
            [pair for rounds in draw.choices(launches, k=len(launches))
             for pair in draw.choices(rounds, k=len(rounds))]
        )
        for _ in range(resamplings)
    )
    return Ratio(
        of_medians(everything),
        quantile(drawn, 0.025),
        quantile(drawn, 0.975),
        quantile(own, 0.25),
        quantile(own, 0.75),
    )


def quantile(ordered: Sequence[float], part: float) -> float:
    """Of values in order; the nearest of them."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
