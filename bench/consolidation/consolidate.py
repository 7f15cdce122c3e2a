#!/usr/bin/env python3
"""Consolidation: how many bursty models one card serves, by how its memory is shared.

README.md says what is measured and how. Prints a table, and writes OUT/figure.json and the
answers of each trial.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

_HERE = pathlib.Path(__file__).resolve().parent
_EXAMPLES = _HERE.parents[1] / "examples"
sys.path.insert(0, str(_EXAMPLES))

import bus  # noqa: E402
import figure  # noqa: E402
import waits_table  # noqa: E402
from broker_phase import BrokerOptions, run_broker, run_host_alone  # noqa: E402
from conditions import MIB, Conditions  # noqa: E402
from load.summary import summarise  # noqa: E402
from load.bursts import made_like  # noqa: E402
from load.trace import read_trace  # noqa: E402
from local_broker import Programs  # noqa: E402
from machine import machine  # noqa: E402
from over_seeds import over_seeds, pooled_goals, said  # noqa: E402
from plain_phase import plain_copy_rate, run_alone_again, run_plain  # noqa: E402
from program_kinds import add_argument as add_kinds  # noqa: E402
from record import Record  # noqa: E402
from servers import servers_of  # noqa: E402

_DEFAULT_TRACE = _EXAMPLES / "load" / "traces" / "bursty-6.trace"
_MODES = ("alone", "static", "native", "gmb")
# Only when it is asked for: not every device has room for it.
_ROOMY = "roomy"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--bin", help="the programs' folders, as in PATH [PATH]")
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--size", choices=("full", "tiny"), default="full", help="[full]")
    parser.add_argument(
        "--servers",
        choices=("models", "programs"),
        default="models",
        help="programs: servers that know nothing of gmb, under gmb run [models]",
    )
    add_kinds(parser)
    parser.add_argument("--trace", type=pathlib.Path, default=_DEFAULT_TRACE)
    parser.add_argument(
        "--more-seeds",
        default="",
        help="traces like the first one with other seeds, as in 7,8: gmb is tried with them too",
    )
    parser.add_argument("--seconds", type=float, default=45.0, help="of the trace [45]")
    parser.add_argument(
        "--split", type=int, help="models of a static split [6; with --card-mib: card / peak]"
    )
    parser.add_argument(
        "--card-mib", type=int, default=0, help="the card [so many of the largest peak alone]"
    )
    parser.add_argument(
        "--host-pool-mib", type=int, default=54 * 1024, help="gmbd's host pool [55296]"
    )
    parser.add_argument(
        "--factors",
        default="3,4",
        help="gmb is tried with so many times the static split's models [3,4]",
    )
    parser.add_argument(
        "--modes",
        default=",".join(_MODES),
        help=f"[{','.join(_MODES)}]; {_ROOMY}: the models of --factors on the whole device",
    )
    parser.add_argument(
        "--alone-models",
        type=int,
        help="alone is asked the requests of so many models [the fewest that gmb gets]",
    )
    parser.add_argument(
        "--alone-once",
        action="store_true",
        help="alone is run before the others, and not once more behind them",
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="replay where models are refused, too"
    )
    parser.add_argument("--gmbd", default="", help="further arguments of gmbd, in one word")
    options = parser.parse_args()
    options.modes = set(options.modes.split(","))
    options.more_seeds = [int(part) for part in options.more_seeds.split(",") if part]
    options.factors = [int(part) for part in options.factors.split(",")]
    if unknown := options.modes - {*_MODES, _ROOMY}:
        parser.error(f"--modes: there is no {', '.join(sorted(unknown))}")
    if options.servers == "programs" and options.device == "host":
        parser.error("--servers programs needs a GPU")
    if options.kinds is not None and options.servers != "programs":
        parser.error("--kinds is for --servers programs")
    if options.card_mib == 0:
        if options.device == "host":
            parser.error("--device host needs --card-mib")
        options.split = options.split or 6
    return options


def run(record: Record, options: argparse.Namespace) -> None:
    """The phases, in order."""
    host_pool = options.host_pool_mib * MIB
    on_host = record.conditions.device == "host"
    models = options.alone_models or record.models_alone(options.factors)
    if on_host and "alone" in options.modes:
        record.add_alone(run_host_alone(record, host_pool, models, "alone"), models)
    if not on_host and "gmb" in options.modes:
        record.copy_bytes_per_ms = plain_copy_rate(record)
    if not on_host and options.modes - {"gmb"}:
        run_plain(record, options.modes, options.factors, options.keep_going, models)
    if "gmb" in options.modes:
        broker_options = BrokerOptions(host_pool, options.gmbd.split())
        # Programs are split by limits of tenants: not all of them take a share by themselves.
        by_limits = on_host or record.conditions.servers.unchanged
        static = by_limits and "static" in options.modes
        run_broker(record, broker_options, options.factors, static)
    if {"alone", "gmb"} <= options.modes and not options.alone_once:
        record.add_alone_after(
            run_host_alone(record, host_pool, models, "alone-after")
            if on_host
            else run_alone_again(record, models)
        )


def finish(record: Record, trace_name: str) -> int:
    """Prints and writes what there is; how many goals were missed."""
    conditions = record.conditions
    result: dict[str, Any] = {
        "machine": machine(conditions),
        "trace": {"file": trace_name, **conditions.trace.header},
        "seconds": conditions.seconds,
        "card_bytes": conditions.card_bytes,
        "split_models": record.split,
        "notes": record.notes,
        "trials": [trial.as_json() for trial in record.trials],
    }
    missed = 0
    result["copy_bytes_per_ms"] = record.copy_bytes_per_ms
    alone = record.both_alone()
    if record.alone is not None and alone is not None:
        spread = over_seeds(alone, record.trials)
        goals = figure.goals(alone, record.trials, record.copy_bytes_per_ms)
        if spread is not None:
            goals += pooled_goals(spread, record.copy_bytes_per_ms)
        missed = sum(not goal["reached"] for goal in goals)
        result["alone"] = summarise(record.alone.answers)
        if record.alone_after is not None:
            result["alone_after"] = summarise(record.alone_after.answers)
        result["peaks"] = record.alone.peaks
        result["goals"] = goals
        print(figure.table(record.alone, record.alone_after, record.trials))
        if record.alone_after is not None:
            print(figure.both_alone_said(record.alone, record.alone_after))
        for trial in record.trials:
            if trial.waits:
                print(f"{trial.mode}, {trial.models} models, seed {trial.seed}, waited for (ms):")
                print(waits_table.table(waits_table.summary(trial.pairs())))
                nbytes, rate = trial.restored_bytes, record.copy_bytes_per_ms
                if nbytes is not None and rate is not None:
                    print(bus.said(nbytes, conditions.seconds, rate))
        for goal in goals:
            word = "reached" if goal["reached"] else "MISSED "
            print(f"{word}  {goal['goal']}: {goal['said']}")
        if spread is not None:
            result["over_seeds"] = spread
            print(said(spread))
    (conditions.out / "figure.json").write_text(json.dumps(result, indent=1) + "\n")
    return missed


def main() -> None:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    trace = read_trace(options.trace)
    conditions = Conditions(
        device=options.device,
        size=options.size,
        card_bytes=options.card_mib * MIB,
        seconds=options.seconds,
        trace=trace,
        programs=Programs(options.bin),
        out=options.out.resolve(),
        more_traces=tuple(made_like(trace, seed) for seed in options.more_seeds),
        servers=servers_of(options),
    )
    record = Record(conditions, options.split)
    record.note(
        f"trace {options.trace.name}, seed {trace.header.get('seed')}, {options.seconds:g} s"
    )
    missed = 0
    try:
        run(record, options)
    finally:
        missed = finish(record, options.trace.name)
    sys.exit(min(missed, 100))


if __name__ == "__main__":
    main()
