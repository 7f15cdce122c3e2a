"""Quantities of memory as people write them: as in files and on command lines."""

from __future__ import annotations

import operator
import re
from fractions import Fraction

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")
_UNITS = {
    "": 1,
    "b": 1,
    **{f"{letter}{i}": 1024**n for n, letter in enumerate("kmgt", 1) for i in ("i", "ib")},
    **{f"{letter}b": 1000**n for n, letter in enumerate("kmgt", 1)},
}
_ACCEPTED = 'write whole bytes, or text such as "512MiB" or "1.5GiB"'


def whole_bytes(count: int | str, what: str) -> int:
    """Parts of a byte in a text with a unit are dropped; a number has none."""
    if isinstance(count, str):
        return _parsed(count, what)
    try:
        return operator.index(count)
    except TypeError:
        raise TypeError(f"gmb: {what} is no such number: {_ACCEPTED}; got {count!r:.60}") from None


def _parsed(text: str, what: str) -> int:
    match = _NUMBER.fullmatch(text.strip().lower())
    unit = _UNITS.get(match[2]) if match else None
    if match is None or unit is None or (unit == 1 and "." in match[1]):
        raise ValueError(f"gmb: {what} is not understood: {_ACCEPTED}; got {text!r:.60}")
    return int(Fraction(match[1]) * unit)
