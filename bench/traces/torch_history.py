"""The requests to PyTorch's allocator, from its memory history, as lines of a trace (README.md)."""

# Actions of the allocator by itself, and its notes.
_NOT_ASKED_FOR = frozenset((
    "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom",
    "user_defined"))


class HistoryError(Exception):
    """A history that is not as PyTorch writes it: says which event, and what is wrong with it."""


def events_of(snapshot, device):
    """The events of a device, of what torch.cuda.memory._snapshot() gives."""
    try:
        events = snapshot["device_traces"][device]
    except (KeyError, IndexError, TypeError) as error:
        raise HistoryError(f"the snapshot has no device_traces of device {device}") from error
    if not events:
        raise HistoryError(f"the snapshot has no events of device {device}: was the history recorded?")
    return events


def to_lines(events, most):
    """The lines of a trace; at most so many. Memory from before the history is left out."""
    lines, streams, live, blocks = [], {}, {}, 0
    for number, event in enumerate(events):
        if len(lines) == most:
            break
        action = _get(event, number, "action", str)
        if action in _NOT_ASKED_FOR:
            continue
        if action not in ("alloc", "free_requested"):
            raise HistoryError(f"event {number}: unknown action {action!r}: is it asked of the "
                               "allocator, or done by it? (torch_history.py)")
        address = _get(event, number, "addr", int)
        if action == "alloc":
            if address in live:
                raise HistoryError(f"event {number}: {address:#x} is allocated twice: its free is missing")
            size, stream = _get(event, number, "size", int), _get(event, number, "stream", int)
            said = streams.setdefault(stream, len(streams))
            live[address] = blocks
            blocks += 1
            lines.append(f"+ {size} {said}" if said else f"+ {size}")
        elif address in live:
            lines.append(f"- {live.pop(address)}")
    return lines


def _get(event, number, name, kind):
    if not isinstance(event, dict) or name not in event:
        raise HistoryError(f"event {number}: has no {name}: {event!r}")
    value = event[name]
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is int and value < 0):
        raise HistoryError(f"event {number}: not a possible {name}: {value!r}")
    return value
