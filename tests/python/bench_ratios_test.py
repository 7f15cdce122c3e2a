"""bench/python finds a difference between rounds that is there, and no other."""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "python"))
from ratios import of_medians, quantile, ratio  # noqa: E402


def launches(slower, seed, count=4, rounds=40, noise=0.02):
    """Rounds in which the second of two is that much slower, launches that differ by noise."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        bias = draw.uniform(1 - noise, 1 + noise)
        made.append([(draw.uniform(1, 1 + noise), slower * bias * draw.uniform(1, 1 + noise))
                     for _ in range(rounds)])
    return made


def test_equal_programs_are_not_told_apart():
    for seed in range(5):
        found = ratio(launches(1.0, seed), resamplings=200)
        assert found.low <= 1.01 and found.high >= 0.99, (seed, found)
        assert found.low <= found.ratio <= found.high


def test_a_slower_one_is():
    for seed in range(5):
        found = ratio(launches(1.1, seed), resamplings=200)
        assert found.high < 0.97, (seed, found)
        assert found.first_quartile < 1 / 1.05 < 1


def test_launches_that_disagree_make_the_interval_wide():
    steady = ratio(launches(1.0, 1, noise=0.001), resamplings=200)
    shaken = ratio([launches(1.0, 1, count=1, noise=0.001)[0],
                    launches(1.2, 2, count=1, noise=0.001)[0]], resamplings=200)
    assert shaken.high - shaken.low > 0.1 > 10 * (steady.high - steady.low)


def test_medians_and_quantiles():
    assert of_medians([(2.0, 1.0), (4.0, 2.0), (100.0, 3.0)]) == 2.0
    assert [quantile([1, 2, 3, 4], part) for part in (0, 0.25, 0.75, 1)] == [1, 2, 4, 4]
