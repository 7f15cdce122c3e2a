"""The arithmetic of the waits that bench/consolidation says a request had."""

import dataclasses
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "consolidation"))

import bus
import figure
import waits_table
from alone import Alone
from broker_events import Event, read_events, unix_time
from load.answer import Answer
from moves import moves_of
from restores import mark_restores, times_of
from spans import length, split, union
from trial import Trial
from waits import AT_ONCE, FULL_POOL, NO_WAKE, PARTS, RESIDENT, waits_of, write_waits

GIB = 1 << 30
START = 1000.0  # Unix time of what is 0 below


def answer(model="m00", sent=0.0, began=None, ms=100.0, met=True, **more):
    """Sent and begun at such times, with its answer `ms` later."""
    return Answer(
        model=model, batch=1, due_ms=sent * 1000, late_ms=0, latency_ms=ms, ok=True,
        met_evicted=met, sent_at=START + sent, began_at=START + (sent if began is None else began),
        queue_ms=0.0 if began is None else (began - sent) * 1000, **more,
    )  # fmt: skip


def event(at, *what, **more):
    return Event(START + at, *what, **more)


def moved(tenant, lease, kind, begin, end, nbytes=GIB):
    words = {"out": ("evict_started", "evicted"), "in": ("restore_started", "restored")}[kind]
    return [event(at, word, tenant, lease, nbytes) for at, word in zip((begin, end), words)]


def waits(answers, *events):
    return waits_of(answers, moves_of(sorted(sum(events, []), key=lambda event: event.at)))


def parts(wait):
    return {part: round(ms) for part, ms in wait.parts.items() if ms >= 0.5}


def test_spans_are_joined_and_cut():
    assert union([(3, 4), (0, 2), (1, 2.5), (5, 5)]) == [(0, 2.5), (3, 4)]
    inside, outside = split([(0, 10), (20, 30)], [(2, 3), (8, 22), (29, 40)])
    assert inside == [(2, 3), (8, 10), (20, 22), (29, 30)]
    assert outside == [(0, 2), (3, 8), (22, 29)]
    assert length(inside) + length(outside) == 20
    assert split([(0, 1)], []) == ([], [(0, 1)])


def test_times_have_any_number_of_digits():
    assert unix_time("1970-01-01T00:00:01Z") == 1
    assert unix_time("1970-01-01T00:00:01.5Z") == 1.5
    assert unix_time("1970-01-01T00:01:00.123456789Z") == pytest.approx(60.123456789)
    with pytest.raises(ValueError):
        unix_time("yesterday")


def test_events_are_read_as_gmb_watch_says_them():
    whole = json.dumps({"at": "1970-01-01T00:00:02Z", "kind": "lease_granted", "tenant": "m00",
                        "lease_id": 7, "bytes": 4096, "took": 0.25, "missed": 3})  # fmt: skip
    [event] = read_events([whole + "\n", whole[:20]])
    assert event == Event(2.0, "lease_granted", "m00", 7, 4096, 0.25, 3)


def test_a_wake_with_room_waits_for_its_turn_and_the_copy():
    [wait] = waits([answer(ms=100)], moved("m00", 1, "in", 0.010, 0.060))
    assert wait.kind == AT_ONCE
    assert parts(wait) == {"turn": 10, "copy": 50, "rest": 40}
    assert wait.back_bytes == GIB


def test_a_wake_in_a_full_pool_waits_for_what_others_leave():
    [wait] = waits(
        [answer(ms=200)],
        moved("m01", 9, "out", 0.005, 0.080, 3 * GIB),
        moved("m00", 1, "in", 0.090, 0.150),
        moved("m00", 2, "in", 0.090, 0.170),
    )
    assert wait.kind == FULL_POOL
    assert parts(wait) == {"room": 75, "turn": 15, "copy": 80, "rest": 30}
    assert (wait.back_bytes, wait.others_out_bytes, wait.others_in_bytes) == (2 * GIB, 3 * GIB, 0)


def test_a_wake_that_begins_while_others_leave_is_one_in_a_full_pool():
    [wait] = waits(
        [answer(ms=200)],
        moved("m01", 9, "out", 0.005, 0.080, 3 * GIB),
        moved("m00", 1, "in", 0.020, 0.040),
        moved("m00", 2, "in", 0.030, 0.060),
        moved("m00", 3, "in", 0.080, 0.100),
    )
    assert wait.kind == FULL_POOL
    assert parts(wait) == {"turn": 5, "room": 35, "copy": 60, "rest": 100}
    assert wait.back_bytes == 3 * GIB


def test_memory_of_others_that_leaves_before_or_later_was_not_waited_for():
    [wait] = waits(
        [answer(sent=1.0, ms=200)],
        moved("m01", 8, "out", 0.5, 0.9),
        moved("m01", 9, "out", 1.005, 1.5),
        moved("m00", 1, "in", 1.010, 1.060),
    )
    assert wait.kind == AT_ONCE


def test_a_trim_of_another_makes_room_too():
    trim = [event(0.001, "trim_asked", "m01"), event(0.021, "trim_answered", "m01")]
    [wait] = waits([answer(ms=100)], trim, moved("m00", 1, "in", 0.025, 0.060))
    assert wait.kind == FULL_POOL
    assert parts(wait) == {"turn": 5, "room": 20, "copy": 35, "rest": 40}


def test_its_own_memory_that_is_still_leaving_is_its_turn():
    [wait] = waits(
        [answer(ms=100)], moved("m00", 1, "out", -0.010, 0.030), moved("m00", 1, "in", 0.030, 0.080)
    )
    assert wait.kind == AT_ONCE
    assert parts(wait) == {"turn": 30, "copy": 50, "rest": 20}


def test_work_before_memory_left_in_the_middle_is_no_wait():
    [wait] = waits(
        [answer(ms=500)], moved("m00", 1, "out", 0.300, 0.340), moved("m00", 1, "in", 0.350, 0.400)
    )
    assert parts(wait) == {"turn": 50, "copy": 50, "rest": 400}


def test_behind_another_that_wakes_the_wake_counts_and_then_the_queue():
    first = answer(sent=0.0, ms=100)
    second = answer(sent=0.020, began=0.100, ms=100)
    _, wait = waits([first, second], moved("m00", 1, "in", 0.010, 0.060))
    assert wait.kind == AT_ONCE
    assert parts(wait) == {"copy": 40, "queue": 40, "rest": 20}


def test_growing_counts_from_the_request_to_the_grant():
    grant = [event(0.050, "lease_granted", "m00", 5, GIB, took=0.040)]
    [wait] = waits([answer(ms=100, met=False)], grant)
    assert wait.kind == RESIDENT
    assert parts(wait) == {"grow": 40, "rest": 60}


def test_growing_that_is_refused_counts_from_the_wait_to_the_refusal():
    ends = [event(at, kind, "m00", 0, GIB) for at, kind in
            ((0.010, "acquire_waiting"), (0.030, "acquire_denied"), (0.050, "acquire_denied"))]  # fmt: skip
    assert parts(waits([answer(met=False)], ends)[0]) == {"grow": 20, "rest": 80}


def test_a_wait_that_was_granted_does_not_count_again_when_a_later_request_is_refused():
    waited = event(0.010, "acquire_waiting", "m00", 0, GIB)
    grant = event(0.020, "lease_granted", "m00", 5, GIB, took=0.010)
    denied = event(0.070, "acquire_denied", "m00", 0, GIB)
    assert parts(waits([answer(met=False)], [waited, grant, denied])[0]) == {"grow": 10, "rest": 90}


def test_trying_again_is_growing():
    again = answer(ms=300, met=False, retried_ms=250)
    assert parts(waits([again])[0]) == {"grow": 250, "rest": 50}


def test_growing_of_others_does_not_count():
    grant = [event(0.050, "lease_granted", "m01", 5, GIB, took=0.040)]
    assert parts(waits([answer(met=False)], grant)[0]) == {"rest": 100}


def test_parts_add_up_to_the_latency_which_begins_when_it_was_due():
    late = dataclasses.replace(answer(ms=130), late_ms=7)  # answered 123 ms after it was sent
    [wait] = waits(
        [late],
        moved("m01", 9, "out", 0.0, 0.033),
        moved("m00", 1, "in", 0.040, 0.0612),
        [event(0.128, "lease_granted", "m00", 5, GIB, took=0.008)],
    )
    assert parts(wait)["grow"] == 3
    assert set(wait.parts) == set(PARTS)
    assert sum(wait.parts.values()) == pytest.approx(130, abs=0.01)


def test_a_lease_that_is_given_up_on_its_way_ends_there():
    begun = moved("m00", 1, "in", 0.010, 9)[:1]
    [wait] = waits([answer(ms=100)], begun, [event(0.030, "lease_released", "m00", 1, GIB)])
    assert parts(wait) == {"turn": 10, "copy": 20, "rest": 70}


def test_a_server_that_waited_without_a_wake_is_told_apart():
    assert waits([answer()])[0].kind == NO_WAKE


def test_programs_are_marked_by_the_events():
    events = moved("m00", 1, "in", 0.010, 0.060)
    plain = [answer(met=False), answer(sent=1.0, met=False)]
    marked = mark_restores(plain, times_of(events))
    assert [a.met_evicted for a in marked] == [True, False]
    assert marked[0].wait_ms == pytest.approx(60)


def tabled():
    answers = [answer(sent=10.0 * i, ms=10 + i / 100, met=False) for i in range(99)]
    slow = answer(sent=990.0, ms=837)
    pairs = list(zip([*answers, slow], waits([*answers, slow],
                     moved("m01", 9, "out", 990.001, 990.5, 5 * GIB),
                     moved("m00", 1, "in", 990.6, 990.8, 2 * GIB))))  # fmt: skip
    return pairs, waits_table.summary(pairs)


def test_the_table_explains_p99_and_the_worst():
    _, found = tabled()
    assert (found[RESIDENT]["count"], found[FULL_POOL]["count"], found["all"]["count"]) == (99, 1, 100)
    assert found[RESIDENT]["tail_count"] == 1
    tail = found[FULL_POOL]["tail_ms"]
    assert {part: round(ms) for part, ms in tail.items() if ms >= 0.5} == {
        "turn": 101, "room": 499, "copy": 200, "rest": 37
    }  # fmt: skip
    text = waits_table.table(found)
    assert "| full pool | 1 | 837.0 | 837.0 | 837.0 | 1 | 200.0 | 499.0 | 101.0 |" in text
    assert "slow: 837.0 ms = copy 200.0 + room 499.0 + turn 101.0" in text
    assert "2.00 GiB came back; meanwhile 5.00 GiB of others left" in text


def test_goals_are_alone_and_copies_of_the_largest_wake():
    _, found = tabled()
    [goal] = waits_table.goals(found, 10.0, GIB / 50, "18 models")  # 50 ms a GiB
    assert not goal["reached"]  # 10 + 2.7 x 100
    assert "837.0 ms, bound 280.0" in goal["said"]
    assert waits_table.goals(found, 600.0, GIB / 50, "18 models")[0]["reached"]
    assert waits_table.goals(found, 10.0, None, "18 models") == []


def test_a_trial_judges_them_and_its_json_has_them(tmp_path):
    pairs, found = tabled()
    answers, told = [a for a, _ in pairs], [w for _, w in pairs]
    trial = Trial("gmb", 1, {}, {}, 1, 1, answers=answers, waits=told)
    alone = Alone([answer(ms=10, met=False)], {})
    goals = {goal["goal"]: goal["reached"] for goal in figure.goals(alone, [trial], GIB / 50)}
    assert goals["1 models: p99 of those that met an evicted model, full pool, within alone and 2.7 copies"] is False
    assert json.loads(json.dumps(trial.as_json()))["waited_for"]["all"]["max"] == 837
    write_waits(tmp_path / "w.jsonl", answers, told)
    last = json.loads((tmp_path / "w.jsonl").read_text().splitlines()[-1])
    assert last["parts"]["room"] == pytest.approx(499) and last["kind"] == FULL_POOL


def test_alone_before_and_after_are_one_reference():
    before = Alone([answer(ms=10)], {"torch": 7}, {"6": [answer(ms=10)]})
    after = Alone([answer(ms=14)], {"torch": 8}, {"6": [answer(ms=14)], "7": [answer(ms=1)]})
    both = before.with_more(after)
    assert [a.latency_ms for a in both.answers] == [10, 14]
    assert {seed: len(part) for seed, part in both.by_seed.items()} == {"6": 2, "7": 1}
    assert both.peaks == {"torch": 7}
    assert "before 10.0 ms, after 14.0: 1.40x" in figure.both_alone_said(before, after)


def test_the_bus_carried_all_that_came_back_while_the_trace_was_replayed():
    events = [
        *moved("m00", 1, "in", -1.0, 0.5),
        *moved("m01", 2, "in", 1.0, 2.0),
        *moved("m01", 3, "out", 2.0, 3.0),
        *moved("m00", 1, "in", 9.0, 11.0),
        event(4.0, "restore_started", "m00", 4, GIB),
        event(5.0, "restore_failed", "m00", 4, GIB),
    ]
    nbytes = bus.restored_bytes(events, (START, START + 10))
    assert nbytes == 2 * GIB
    assert bus.said(nbytes, 10, GIB / 1000) == "2.00 GiB came back in 10 s, 20.0 % of the bus"
