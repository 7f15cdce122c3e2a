#!/usr/bin/env python3
"""PyTorch by itself, under `gmb run`, and with gmb.torch, in turns of one run.

    torch_bench.py throughput [--launches 3] [--most-seconds 170] [--seconds 2.5]
    torch_bench.py pairs [--pairs 10] [--seconds 2] [--threads 1 8]
    torch_bench.py regrow [--rounds 9] [--gib 1,8,32] [--mib 64,512]

GMB_SOCKET_DIR is a broker; GMB_RUN is what `gmb run` needs, one word a line, up to the
program. Programs are all warm, and one works while the others wait; the order is reversed in
every second round. There are two native ones, first and last of a round: others are compared
with both, and they with each other, which says how far a ratio of 1 strays.

`pairs` is the native program and the one under `gmb run` alone, in alternating turns of two
seconds, with one thread and with several that each have a stream. A turn that is so long finds
the other program parked.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

import turns
from ratios import ratio

MIB, GIB = 1 << 20, 1 << 30
ALL = {"native": "native", "gmb run": "run", "gmb.torch": "leased", "native again": "native"}

SIZES = {
    "small": {"width": 256, "layers": 6, "rows": 1, "length": 128},
    "medium": {"width": 1024, "layers": 8, "rows": 8, "length": 512},
    "large": {"width": 2048, "layers": 8, "rows": 16, "length": 512},
}
MODES = ("eager", "graph", "compiled")
GOAL = 0.99
TURN_S = 0.025  # of one program's work


def launched(options: argparse.Namespace, kinds: dict[str, str]) -> Any:
    return turns.launch(kinds, os.environ.get("GMB_RUN", "").splitlines(), options.log)


# --- Throughput.


class Cell:
    """The measurements of one size in one mode: rounds of times by program, a launch each."""

    def __init__(self) -> None:
        self.launches: list[list[dict[str, dict[str, float]]]] = []

    def median(self, name: str, clock: str) -> float:
        return statistics.median(r[name][clock] for rounds in self.launches for r in rounds)

    def ratio(self, name: str, clock: str) -> Any:
        def pair(number: int, one: dict[str, dict[str, float]]) -> tuple[float, float]:
            # Either native one, as often first as last of its round. (Not their mean: that
            # of skewed times has another median.)
            again = name != "native again" and number // 2 % 2 == 1
            return one["native again" if again else "native"][clock], one[name][clock]

        return ratio([[pair(i, one) for i, one in enumerate(rounds)] for rounds in self.launches])


def measure_cell(
    workers: list[turns.Worker], mode: str, seconds: float
) -> tuple[list[dict[str, dict[str, float]]], float]:
    """Rounds, and the seconds that the first step took: of compiling, if it is."""
    prepared = turns.all_at_once(workers, "prepare", mode=mode, core=turns.core_for_all())
    alone = turns.in_turn(workers, 0, "time", mode=mode, warm=5, steps=5)
    steps = int(min(100, max(4, TURN_S / alone[0]["wall_s"])))
    rounds: list[dict[str, dict[str, float]]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(rounds) < 6:
        answers = turns.in_turn(workers, len(rounds), "time", mode=mode, warm=3, steps=steps)
        rounds.append({worker.name: answer for worker, answer in zip(workers, answers)})
    first = max(one["first_s"] for one in prepared)
    print(f"  {mode}: {len(rounds)} rounds of {steps} steps, the first took {first:.1f} s", file=sys.stderr)
    return rounds, first


def throughput(options: argparse.Namespace) -> dict[str, Any]:
    cells: dict[tuple[str, str], Cell] = {}
    began = time.monotonic()
    next_s = 0.0
    for number in range(options.launches):
        at = time.monotonic()
        if number > 0 and at - began + next_s > options.most_seconds:
            break
        print(f"launch {number + 1}", file=sys.stderr)
        first_s = 0.0
        with launched(options, ALL) as workers:
            for size in options.sizes:
                turns.all_at_once(workers, "load", **SIZES[size])
                for mode in options.modes:
                    rounds, first = measure_cell(workers, mode, options.seconds)
                    first_s += first
                    cells.setdefault((size, mode), Cell()).launches.append(rounds)
        # The others find in a cache what the first one compiles: half of it, to be careful.
        next_s = time.monotonic() - at - first_s / 2
    print_throughput(cells)
    return {f"{size}, {mode}": cell.launches for (size, mode), cell in cells.items()}


def print_throughput(cells: dict[tuple[str, str], Cell]) -> None:
    others = ("gmb run", "gmb.torch", "native again")
    for clock, what in (("wall_s", "by the clock"), ("gpu_s", "by the GPU's events")):
        print(f"\nthroughput as a part of native, {what}: ratio of medians "
              "(bootstrapped 95 % interval, the rounds' quartiles)")
        for (size, mode), cell in cells.items():
            count = sum(len(rounds) for rounds in cell.launches)
            shape = "{layers} layers of {width}, {rows} x {length} tokens".format(**SIZES[size])
            print(f"{size} ({shape}), {mode}: native {cell.median('native', clock) * 1e6:.1f} us a step, "
                  f"{count} rounds, {len(cell.launches)} launches")
            for name in others:
                found = cell.ratio(name, clock)
                goal = "" if name == "native again" else ": " + verdict(found)
                print(f"    {name:<14} {cell.median(name, clock) * 1e6:9.1f} us  {found}{goal}")


def verdict(found: Any) -> str:
    if found.low >= GOAL:
        return f"at least {GOAL}"
    return f"below {GOAL}" if found.high < GOAL else f"{GOAL} or not: cannot be said"


# --- Throughput in pairs.


def pairs(options: argparse.Namespace) -> dict[str, Any]:
    """By size, mode and threads: launches, rounds, and the answers by program."""
    cells: dict[str, list[list[dict[str, dict[str, float]]]]] = {}
    kinds = {"native": "native", "gmb run": "run"}
    if options.again:
        kinds["native again"] = "native"
    for number in range(options.launches):
        with launched(options, kinds) as workers:
            for size in options.sizes:
                turns.all_at_once(workers, "load", **SIZES[size])
                for mode in options.modes:
                    for threads in options.threads:
                        what = f"{size}, {mode}, {threads} thread{'s' if threads > 1 else ''}"
                        rounds = measure_pairs(workers, mode, threads, options)
                        cells.setdefault(what, []).append(rounds)
                        # A run that is cut short has said what it has seen.
                        print_pairs(what, cells[what], number + 1)
    return dict(cells)


def measure_pairs(
    workers: list[turns.Worker], mode: str, threads: int, options: argparse.Namespace
) -> list[dict[str, dict[str, float]]]:
    cores = turns.cores_for_all(threads)
    turns.in_turn(workers, 0, "gather", mode=mode, threads=threads, cores=cores)
    rounds = []
    for turn in range(options.pairs):
        answers = turns.in_turn(workers, turn, "run", seconds=options.seconds)
        rounds.append({worker.name: answer for worker, answer in zip(workers, answers)})
    turns.all_at_once(workers, "dismiss")
    return rounds


def print_pairs(
    what: str, launches: list[list[dict[str, dict[str, float]]]], number: int
) -> None:
    every = [one for rounds in launches for one in rounds]
    native = statistics.median(one["native"]["wall_s"] for one in every)
    print(f"{what}: native {native * 1e6:.1f} us a step of all threads, {len(every)} pairs of "
          f"{every[0]['native']['took_s']:.1f} s, launch {number}")
    for name in every[0]:
        if name == "native":
            continue
        found = ratio([[(one["native"]["wall_s"], one[name]["wall_s"]) for one in rounds]
                       for rounds in launches])
        word = "reached" if found.ratio >= GOAL else "MISSED"
        goal = f": median {word}, {verdict(found)}" if name == "gmb run" else ""
        print(f"    {name:<14} {found}{goal}", flush=True)


# --- Giving back, and growing again.


def regrow(options: argparse.Namespace) -> dict[str, Any]:
    kinds = {name: kind for name, kind in ALL.items() if name != "native again"}
    measured: dict[str, list[dict[str, dict[str, float]]]] = {}
    with launched(options, kinds) as workers:
        for gib in options.gib:
            for mib in options.mib:
                what = f"{gib:g} GiB in blocks of {mib} MiB"
                measured[what] = regrow_rounds(
                    workers, options, "regrow", total=int(gib * GIB), block=mib * MIB)
        shape = {**SIZES["medium"], "rows": options.rows}
        turns.all_at_once(workers, "load", **shape)
        turns.all_at_once(workers, "prepare", mode="eager", core=turns.core_for_all())
        measured[f"a request of {shape['rows']} x 512 tokens (8 layers of 1024)"] = regrow_rounds(
            workers, options, "request")
    for what, rounds in measured.items():
        print_regrow(what, rounds)
    return measured


def regrow_rounds(
    workers: list[turns.Worker], options: argparse.Namespace, do: str, **what: int
) -> list[dict[str, dict[str, float]]]:
    rounds: list[dict[str, dict[str, float]]] = []
    for turn in range(options.rounds + 1):
        answers = turns.in_turn(workers, turn, do, **what)
        if turn > 0:  # the first is for warming up
            rounds.append({worker.name: answer for worker, answer in zip(workers, answers)})
    return rounds


def print_regrow(what: str, rounds: list[dict[str, dict[str, float]]]) -> None:
    columns = [key for key in rounds[0]["native"] if key.endswith("_s")]
    print(f"\n{what}: ms, medians of {len(rounds)} (times native's)")
    print(f"{'':<12}" + "".join(f"{column[:-2].replace('_', ' '):>20}" for column in columns)
          + f"{'both':>20}{'held after':>14}")
    both = {name: [one[name]["give_back_s"] + one[name]["regrow_s"] for one in rounds]
            for name in rounds[0]}
    for name in rounds[0]:
        line = f"{name:<12}"
        for column in columns:
            own, native = (statistics.median(one[n][column] for one in rounds) for n in (name, "native"))
            line += f"{own * 1e3:>11.3f} ({own / native:5.2f})"
        own, native = statistics.median(both[name]), statistics.median(both["native"])
        line += f"{own * 1e3:>11.3f} ({own / native:5.2f})"
        held = max(one[name]["held_bytes"] for one in rounds)
        print(line + f"{held // MIB:>10} MiB")


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", type=pathlib.Path, default=pathlib.Path("torch_bench.log"),
                        help="what the programs say [torch_bench.log]")
    parser.add_argument("--json", type=pathlib.Path, help="all rounds, to a file")
    which = parser.add_subparsers(dest="which", required=True)
    one = which.add_parser("throughput")
    one.add_argument("--launches", type=int, default=3, help="of all programs anew [3]")
    one.add_argument("--most-seconds", type=float, default=170, help="no launch that would end later [170]")
    one.add_argument("--seconds", type=float, default=2.5, help="of rounds for a size and mode in a launch [2.5]")
    one.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES), help="of the model [all]")
    one.add_argument("--modes", nargs="*", default=list(MODES), choices=MODES, help="of running it [all]")
    three = which.add_parser("pairs")
    three.add_argument("--pairs", type=int, default=10, help="for a size, mode and threads [10]")
    three.add_argument("--seconds", type=float, default=2.0, help="of a turn [2]")
    three.add_argument("--launches", type=int, default=1, help="of both programs anew [1]")
    three.add_argument("--threads", type=int, nargs="*", default=[1, 8], help="[1 8]")
    three.add_argument("--sizes", nargs="*", default=["small", "medium"], choices=list(SIZES),
                       help="of the model [small medium]")
    three.add_argument("--modes", nargs="*", default=list(MODES), choices=MODES, help="of running it [all]")
    three.add_argument("--again", action="store_true", help="a second native program as well")
    two = which.add_parser("regrow")
    two.add_argument("--rounds", type=int, default=9, help="of each working set [9]")
    two.add_argument("--gib", type=numbers, default=[1.0, 8.0, 32.0], help="working sets [1,8,32]")
    two.add_argument("--mib", type=lambda text: [int(n) for n in numbers(text)], default=[64, 512],
                     help="blocks of them [64,512]")
    two.add_argument("--rows", type=int, default=64, help="of the large request [64]")
    return parser.parse_args()


def main() -> None:
    options = parse()
    measured = {"throughput": throughput, "pairs": pairs, "regrow": regrow}[options.which](options)
    if options.json is not None:
        options.json.write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
