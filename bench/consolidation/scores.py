"""The checksum of an answer: the bits of every score, so that it is right or wrong, not near."""

from __future__ import annotations

from typing import Any

import numpy as np


def checksum(scores: Any) -> str:
    bits = np.ascontiguousarray(scores, dtype=np.float32).view(np.int32).astype(np.int64)
    places = np.arange(1, bits.size + 1, dtype=np.int64)
    return f"{int((bits * places).sum()) & 0xFFFFFFFFFFFFFFFF:016x}"
