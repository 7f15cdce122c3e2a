"""Quantiles of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(samples: Sequence[float], part: float) -> float:
    """The smallest sample that at least `part` (above 0, up to 1) of all do not exceed.

    A sample itself, never a value between two: with 50 samples p99 is the largest.
    """
    if not samples:
        raise ValueError("no samples")
    if not 0 < part <= 1:
        raise ValueError(f"not a part of all: {part}")
    # 1e-9: 0.07 * 100 is a little more than 7.
    return sorted(samples)[max(0, math.ceil(part * len(samples) - 1e-9) - 1)]
