"""Which goals bench/consolidation judges."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "consolidation"))

import figure
from alone import Alone
from load.answer import Answer
from trial import Trial

SPLIT = "at least 3x the models of a static split"


def goals(*trials):
    answer = Answer(model="m00", batch=1, due_ms=0, late_ms=0, latency_ms=5, ok=True)
    played = [Trial(mode, models, {}, {}, 1, 1, answers=[answer]) for mode, models in trials]
    return {goal["goal"]: goal["reached"] for goal in figure.goals(Alone([answer], {}), played)}


def test_a_goal_about_a_mode_that_was_not_run_is_not_judged():
    assert SPLIT not in goals(("gmb", 18))
    assert goals(("gmb", 18))["18 models: no wrong answer"]
    assert goals(("static", 6)) == {}
    assert goals(("native", 6)) == {}


def test_three_times_a_split_is_a_goal_where_both_were_run():
    assert goals(("static", 6), ("gmb", 18))[SPLIT]
    assert not goals(("static", 6), ("gmb", 17))[SPLIT]


def test_native_is_said_where_it_was_run():
    def said(*trials):
        answer = Answer(model="m00", batch=1, due_ms=0, late_ms=0, latency_ms=5, ok=True)
        played = [Trial(m, n, {}, {}, 1, 1, answers=[answer]) for m, n in trials]
        return figure.goals(Alone([answer], {}), played)[0]["said"]

    assert said(("static", 6), ("gmb", 18)) == "gmb 18, static split 6"
    assert said(("static", 6), ("native", 7), ("gmb", 18)) == "gmb 18, static split 6, native 7"
