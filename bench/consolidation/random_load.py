#!/usr/bin/env python3
"""Random load with kills, stops and reclaims over model servers on one broker.

README.md says what is done. All of it follows from the seed. Ends with 0 when no answer was
wrong, none was missing without a reason, and all memory came back.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import pathlib
import signal
import subprocess
import sys
import threading

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parents[1] / "examples"))

from conditions import MIB, Conditions  # noqa: E402
from load.trace import Trace  # noqa: E402
from local_broker import Problem, Programs  # noqa: E402
from program_kinds import add_argument as add_kinds  # noqa: E402
from random_plan import Shape  # noqa: E402
from random_report import report  # noqa: E402
from random_run import RandomRun  # noqa: E402
from seeds_at_once import seeds_at_once  # noqa: E402
from servers import servers_of  # noqa: E402


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--bin", help="the programs' folders, as in PATH [PATH]")
    parser.add_argument(
        "--seed", required=True, help="of all that is done; several, as in 1,2,3: all at once"
    )
    parser.add_argument("--seconds", type=float, default=480.0, help="of load, at most [480]")
    parser.add_argument(
        "--within", type=float, help="seconds for all of it [--seconds and 60 more]"
    )
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--size", choices=("full", "tiny"), default="full", help="[full]")
    parser.add_argument(
        "--servers",
        choices=("models", "programs"),
        default="programs",
        help="programs: servers that know nothing of gmb, under gmb run [programs]",
    )
    add_kinds(parser)
    parser.add_argument("--models", type=int, default=6, help="[6]")
    parser.add_argument("--pool-mib", type=int, default=8 * 1024, help="[8192]")
    parser.add_argument("--host-pool-mib", type=int, default=16 * 1024, help="[16384]")
    for what, default, help_text in (
        ("kill", 25.0, "SIGKILL of a server"),
        ("stop", 5.0, "SIGSTOP of a server, for 0.2 to 5 s"),
        ("reclaim", 4.0, "gmb reclaim of a server's memory"),
        ("limit", 8.0, "gmb tenant set --limit, and back"),
        ("kill-broker", 60.0, "SIGKILL of the broker"),
    ):
        parser.add_argument(
            f"--{what}",
            type=float,
            default=default,
            metavar="SECONDS",
            help=f"the mean time between two: {help_text}; 0: never [{default:g}]",
        )
    parser.add_argument(
        "--beside-others",
        action="store_true",
        help="others use the device: its memory in use says nothing about this load",
    )
    options = parser.parse_args()
    options.seed = [int(part) for part in options.seed.split(",")]
    options.within = options.within or options.seconds + 60
    if options.servers == "programs" and options.device == "host":
        parser.error("--servers programs needs a GPU")
    if options.kinds is not None and options.servers != "programs":
        parser.error("--kinds is for --servers programs")
    return options


def run_of(options: argparse.Namespace) -> tuple[Conditions, RandomRun]:
    shape = Shape(
        seed=options.seed[0],
        models=options.models,
        seconds=options.seconds,
        kill=options.kill,
        stop=options.stop,
        reclaim=options.reclaim,
        limit=options.limit,
        kill_broker=options.kill_broker,
        start_seconds=2.0 if options.device == "host" else 30.0,
    )
    conditions = Conditions(
        device=options.device,
        size=options.size,
        card_bytes=options.pool_mib * MIB,
        seconds=options.seconds,
        trace=Trace((), {"max_batch": str(shape.max_batch), "seed": str(shape.seed)}),
        programs=Programs(options.bin),
        out=options.out,
        servers=servers_of(options),
        alike_again=True,
    )
    return conditions, RandomRun(conditions, shape, options.host_pool_mib * MIB, options.within)


def one_seed(options: argparse.Namespace) -> bool:
    """Whether nothing was wrong."""
    conditions, run = run_of(options)

    def give_up() -> None:
        faulthandler.dump_traceback()
        with contextlib.suppress(Exception):  # the others go on meanwhile
            report(conditions, run.counts, run.load_seconds)
        run.kill()
        print("random load: FAILED: not done in time", flush=True)
        os._exit(1)

    timer = threading.Timer(options.within, give_up)
    timer.daemon = True
    timer.start()
    try:
        run.run(alone=not options.beside_others)
    except (Problem, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        run.counts.fault(f"given up: {type(error).__name__}: {error}")
    finally:
        run.kill()
        report(conditions, run.counts, run.load_seconds)
    return not run.counts.faults


def main() -> None:
    options = parse()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    good = seeds_at_once(options) if len(options.seed) > 1 else one_seed(options)
    print(f"random load: {'nothing wrong, all back' if good else 'FAILED'}", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
