"""The bytes that the broker moved, as its log says: over all of its lives, where metrics begin anew."""

from __future__ import annotations

import pathlib
import re
from collections import Counter

_LINE = re.compile(r"^\S+Z \w+ (\w+)(?: .*?)?(?: bytes=(\d+)|$)")
# Words that are said of a broker's work in the result; the rest of the log is for people.
_WORDS = (
    *("evicted", "restored", "evict_failed", "restore_failed", "backed"),
    *("client_overdue", "trim_asked", "pause_started", "pause_withdrawn"),
    *("session_opened", "session_closed", "session_adopted", "session_not_adopted"),
    *("session_not_kept", "not_kept", "record_set_aside", "slab_not_imported", "keeper_lost"),
    *("unreturned_stuck", "missing_changed", "device_lost", "create_failed"),
)


def moves_of(log: pathlib.Path) -> tuple[Counter[str], Counter[str]]:
    """How often each event came, and the sum of its bytes."""
    times: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    with log.open(errors="replace") as lines:
        for line in lines:
            match = _LINE.match(line.rstrip("\n"))
            if match and match[1] in _WORDS:
                times[match[1]] += 1
                nbytes[match[1]] += int(match[2] or 0)
    return times, nbytes
