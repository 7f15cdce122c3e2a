"""Traces: the same for the same seed, and read as they were written. Quantiles."""

import pathlib
import random
from dataclasses import fields, replace

import load
import pytest
from load.bursts import Shape, make_trace, model_name, popularity
from load.quantile import quantile
from load.trace import Request, Trace, one_after_another, read_trace, write_trace

TRACES = sorted(pathlib.Path(list(load.__path__)[0], "traces").glob("*.trace"))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_stored_trace_is_what_its_header_says(path):
    trace = read_trace(path)
    made_from = {f.name: type(f.default)(trace.header[f.name]) for f in fields(Shape)}
    assert make_trace(Shape(**made_from)).requests == trace.requests


def test_there_are_stored_traces():
    assert TRACES


def test_the_seed_decides():
    shape = Shape(seed=7, models=6, seconds=30)
    assert make_trace(shape) == make_trace(shape)
    assert make_trace(shape).requests != make_trace(replace(shape, seed=8)).requests


def test_a_model_is_asked_the_same_whatever_others_there_are():
    few, many = Shape(seed=3, models=6, seconds=30), Shape(seed=3, models=18, seconds=30)
    names = [model_name(number) for number in range(6)]
    assert make_trace(many).of(names).requests == make_trace(few).requests


def test_the_mean_rate_and_the_burst_rate_are_those_of_the_shape():
    shape = Shape(seed=11, models=6, seconds=3000)
    requests = make_trace(shape).requests
    assert len(requests) / 6 / 3000 == pytest.approx(shape.rate, rel=0.1)
    # Within a burst the gaps are those of a Poisson process; the median is among them.
    own = [r.time_ms for r in requests if r.model == "m00"]
    gaps = sorted(after - before for before, after in zip(own, own[1:]))
    assert gaps[len(gaps) // 2] == pytest.approx(1000 / shape.burst_rate * 0.69, rel=0.25)
    assert max(gaps) > 1000


def test_popularity_has_a_heavy_tail_and_the_same_mean_in_each_block():
    shape = Shape(models=18)
    for block in range(3):
        parts = sorted(popularity(shape, block * 6 + place) for place in range(6))
        assert sum(parts) == pytest.approx(6)
        assert parts[-1] / parts[0] == pytest.approx(6)


def test_a_trace_is_read_as_it_was_written(tmp_path):
    trace = make_trace(Shape(seed=2, models=3, seconds=10))
    write_trace(tmp_path / "t", trace)
    assert read_trace(tmp_path / "t") == trace


@pytest.mark.parametrize(
    "line", ["1.0 m00", "x m00 1", "1.0 m00 1.5", "1.0 m00 0", "-1 m00 1", "1.0 m00 1 2"]
)
def test_a_line_that_is_no_request_is_named(tmp_path, line):
    (tmp_path / "t").write_text(f"# seed: 1\n0.5 m00 1\n{line}\n")
    with pytest.raises(ValueError, match="t:3: "):
        read_trace(tmp_path / "t")


def test_times_do_not_go_back(tmp_path):
    (tmp_path / "t").write_text("5 m00 1\n4 m00 1\n")
    with pytest.raises(ValueError, match="t:2: earlier"):
        read_trace(tmp_path / "t")


def test_gaps_are_cut():
    trace = Trace(tuple(Request(t, "m00", 1) for t in (1000.0, 1010.0, 9000.0)))
    squeezed = trace.squeezed(100)
    assert [r.time_ms for r in squeezed.requests] == [100, 110, 210]
    joined = one_after_another([squeezed, squeezed], 50)
    assert [r.time_ms for r in joined.requests] == [100, 110, 210, 360, 370, 470]


def test_quantiles_are_samples():
    assert quantile([5.0], 0.5) == 5.0
    assert quantile([3, 1, 2, 4], 0.5) == 2
    assert quantile(list(range(1, 101)), 0.99) == 99
    assert quantile(list(range(1, 101)), 1.0) == 100
    assert quantile(list(range(1, 101)), 0.07) == 7
    assert quantile(list(range(50)), 0.99) == 49


def test_a_quantile_has_at_least_its_part_at_or_below_it():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(200):
        samples = [chance.random() for _ in range(chance.randint(1, 300))]
        part = chance.randint(1, 100) / 100
        found = quantile(samples, part)
        assert found in samples
        assert sum(s <= found for s in samples) >= part * len(samples) - 1e-6
        assert sum(s < found for s in samples) < part * len(samples) + 1e-6


@pytest.mark.parametrize("samples,part", [([], 0.5), ([1.0], 0.0), ([1.0], 1.5)])
def test_no_quantile_of_nothing(samples, part):
    with pytest.raises(ValueError):
        quantile(samples, part)
