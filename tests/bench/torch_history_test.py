"""A small history by hand, as PyTorch writes it, becomes a trace; one that is wrong is refused."""

import re

import pytest
import trace_file
from torch_history import HistoryError, events_of, to_lines

# Two blocks on the default stream, one of them freed and its address used
# again; one on a second stream; and what the allocator does by itself.
HISTORY = [
    {"action": "segment_alloc", "addr": 0x7000000, "size": 2 << 20, "stream": 0, "frames": []},
    {"action": "free_requested", "addr": 0x1000, "size": 64, "stream": 9},  # from before
    {"action": "free_completed", "addr": 0x1000, "size": 64, "stream": 9},
    {"action": "alloc", "addr": 0x7000000, "size": 100, "stream": 0, "frames": [], "time_us": 1},
    {"action": "alloc", "addr": 0x7000200, "size": 513, "stream": 0},
    {"action": "segment_map", "addr": 0x8000000, "size": 20 << 20, "stream": 0x55A0},
    {"action": "alloc", "addr": 0x8000000, "size": 7 << 20, "stream": 0x55A0},
    {"action": "free_requested", "addr": 0x7000200, "size": 513, "stream": 0},
    {"action": "oom", "size": 1 << 40, "stream": 0, "device_free": 5},
    {"action": "free_requested", "addr": 0x7000000, "size": 100, "stream": 0},
    {"action": "free_completed", "addr": 0x7000000, "size": 100, "stream": 0},
    {"action": "alloc", "addr": 0x7000000, "size": 200, "stream": 0},
    {"action": "snapshot", "addr": 0, "size": 0, "stream": 0},
    {"action": "free_requested", "addr": 0x8000000, "size": 7 << 20, "stream": 0x55A0},
    {"action": "free_requested", "addr": 0x7000000, "size": 200, "stream": 0},
    {"action": "segment_unmap", "addr": 0x8000000, "size": 20 << 20, "stream": 0x55A0},
    {"action": "segment_free", "addr": 0x7000000, "size": 2 << 20, "stream": 0},
    {"action": "user_defined", "addr": 0, "size": 0, "stream": 0},
]
LINES = ["+ 100", "+ 513", f"+ {7 << 20} 1", "- 1", "- 0", "+ 200", "- 2", "- 3"]


def without(number, name):
    event = {key: value for key, value in HISTORY[number].items() if key != name}
    return [*HISTORY[:number], event, *HISTORY[number + 1 :]]


def test_only_what_was_asked_for_is_in_the_trace():
    assert to_lines(HISTORY, 100) == LINES


def test_so_many_lines_at_most():
    for most in range(len(LINES) + 1):
        assert to_lines(HISTORY, most) == LINES[:most]


def test_what_is_written_is_read_as_it_was(tmp_path):
    trace_file.write(tmp_path / "x.trace", "a history by hand", to_lines(HISTORY, 100))
    events, most, streams = trace_file.read(tmp_path / "x.trace")
    assert events == [(100, 0, 0), (513, 1, 0), (7 << 20, 2, 1), (None, 1, 0), (None, 0, 0),
                      (200, 3, 0), (None, 2, 1), (None, 3, 0)]
    assert most == 100 + 513 + (7 << 20)
    assert streams == 2


def test_an_action_that_nobody_knows_is_refused():
    with pytest.raises(HistoryError, match="event 18: unknown action 'borrow'"):
        to_lines([*HISTORY, {"action": "borrow", "addr": 1, "size": 1, "stream": 0}], 100)


def test_a_missing_free_is_found():
    with pytest.raises(HistoryError, match="event 10: 0x7000000 is allocated twice"):
        to_lines([event for number, event in enumerate(HISTORY) if number != 9], 100)


@pytest.mark.parametrize("number, name", [
    (0, "action"), (3, "action"), (3, "addr"), (3, "size"), (3, "stream"), (7, "addr")])
def test_an_event_that_is_cut_short_is_named(number, name):
    with pytest.raises(HistoryError, match=f"event {number}: has no {name}: "):
        to_lines(without(number, name), 100)


@pytest.mark.parametrize("name, value", [
    ("action", 3), ("addr", "0x10"), ("addr", None), ("size", -1), ("size", 1.5), ("size", True),
    ("stream", "default")])
def test_a_value_that_cannot_be_is_named(name, value):
    history = [{"action": "alloc", "addr": 16, "size": 1, "stream": 0, name: value}]
    with pytest.raises(HistoryError, match=re.escape(f"event 0: not a possible {name}: {value!r}")):
        to_lines(history, 100)


@pytest.mark.parametrize("event", [None, [], "alloc", 7])
def test_what_is_no_event_is_refused(event):
    with pytest.raises(HistoryError, match="event 0: has no action"):
        to_lines([event], 100)


def test_the_events_are_those_of_the_device():
    snapshot = {"segments": [], "device_traces": [[], HISTORY]}
    assert events_of(snapshot, 1) is HISTORY
    with pytest.raises(HistoryError, match="no events of device 0: was the history recorded"):
        events_of(snapshot, 0)


@pytest.mark.parametrize("snapshot", [None, [], {}, {"segments": []}, {"device_traces": None},
                                      {"device_traces": [HISTORY]}])
def test_what_is_no_snapshot_is_refused(snapshot):
    with pytest.raises(HistoryError, match="no device_traces of device 1"):
        events_of(snapshot, 1)
