#!/usr/bin/env python3
"""Random load with kills, stops and reclaims over model servers on one broker.

README.md says what is done. All of it follows from the seed. Ends with 0 when no answer was
wrong, none was missing without a reason, and all memory came back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import json
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parents[1] / "examples"))

import all_back  # noqa: E402
from broker_moves import moves_of  # noqa: E402
from conditions import MIB, Conditions, in_gib  # noqa: E402
from fleet import Fleet  # noqa: E402
from kept_broker import Keeper, KeptBroker  # noqa: E402
from load.answer import write_answers  # noqa: E402
from load.bursts import model_name  # noqa: E402
from load.trace import Trace  # noqa: E402
from local_broker import Problem, Programs  # noqa: E402
from machine import device_memory, machine, memory_used  # noqa: E402
from random_actions import RandomActions  # noqa: E402
from random_counts import Counts, did_lines, request_table  # noqa: E402
from random_plan import Action, Shape, make_plan  # noqa: E402
from random_server import Life, RandomServer, warm  # noqa: E402
from restores import mark_restores, restores_of  # noqa: E402
from seeds_at_once import seeds_at_once  # noqa: E402
from servers import MODEL_SERVERS, PROGRAMS, launcher  # noqa: E402

# Of the time in all, what the end may take: the last answers, the servers' ends, the checks.
_END_SECONDS = 25.0
_AFTER_ANSWERS_SECONDS = 15.0


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
        help="programs: PyTorch, JAX and CuPy that know nothing of gmb, under gmb run [programs]",
    )
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
    return options


class Run:
    """One seed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.ends_at = time.monotonic() + options.within
        self.counts = Counts(options.out)
        self.shape = shape = Shape(
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
        self.plan = make_plan(shape)
        self.conditions = Conditions(
            device=options.device,
            size=options.size,
            card_bytes=options.pool_mib * MIB,
            seconds=options.seconds,
            trace=Trace((), {"max_batch": str(shape.max_batch), "seed": str(shape.seed)}),
            programs=Programs(options.bin),
            out=options.out,
            servers=PROGRAMS if options.servers == "programs" else MODEL_SERVERS,
            alike_again=True,
        )
        names = [model_name(number) for number in range(options.models)]
        self.keeper = Keeper(self.conditions.programs, options.out / "keeper.log")
        self.broker = KeptBroker(
            self.conditions.programs,
            device="cuda:0" if options.device == "cuda" else options.device,
            pool=self.conditions.card_bytes,
            host_pool=options.host_pool_mib * MIB,
            tenants={name: {"limit": "100%"} for name in names},
            arguments=["--keeper", str(self.keeper.socket)],
            log=options.out / "gmbd.log",
            await_host_pool=False,  # meanwhile the servers start
        )
        self.fleet: Fleet | None = None
        self.device_before: int | None = None
        self.load_seconds = 0.0
        self.ended_in_order = False

    def run(self) -> None:
        if self.options.device == "cuda" and not self.options.beside_others:
            self.device_before = memory_used()
        with self.keeper:
            with self.broker:
                self._with_broker()
                self._end_broker()
            self._later(all_back.keeper_has_nothing(self.keeper))
            self._code("the keeper", self.keeper.stop())
        self._later(all_back.device_is_free(self.device_before))
        self.ended_in_order = True

    def _with_broker(self) -> None:
        counts, unchanged = self.counts, self.conditions.servers.unchanged
        capacity = int(self.broker.pool()["capacity_bytes"])
        counts.note(f"the broker answers: a pool of {in_gib(capacity)}")
        launch = launcher(self.broker.command) if unchanged else None
        socket_dir = str(self.broker.socket_dir)
        self.fleet = Fleet(self.conditions, "gmb", self.options.models, socket_dir, launch)
        try:
            lives = self._first_lives(self.fleet)
            host_pool = self.broker.prepared_host_pool()
            counts.note(
                f"{len(lives)} servers loaded; host pool {in_gib(host_pool['bytes'])}, "
                f"locked {in_gib(host_pool['locked_bytes'])} {host_pool['problem']}; "
                f"{device_memory(self.conditions)}"
            )
            asyncio.run(self._load(self.fleet, lives))
        finally:
            codes = self.fleet.stop()
            counts.note(f"servers ended with {codes}")
        for server, code in zip(self.fleet.servers, codes):
            self._code(server.name, code)
        self._later(all_back.broker_has_all(self.broker, capacity))
        self._later(all_back.keeper_has_no_client(self.keeper))
        (self.options.out / "status.json").write_text(json.dumps(self.broker.ask("status")))

    def _first_lives(self, fleet: Fleet) -> list[Life]:
        """One after the other: each has all that the ones before leave, or lend."""
        lives = []
        for server in fleet.servers:
            sums, refused = warm(server, self.conditions.batches, self.ends_at)
            self.counts.did["load_refused"] += refused
            lives.append(Life(server, sums))
        return lives

    async def _load(self, fleet: Fleet, lives: Sequence[Life]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(32))
        servers = [
            RandomServer(
                number=number,
                name=life.server.name,
                kind=self.conditions.servers.kind_of(number),
                expected=life.sums,
                peak_bytes=int(life.server.stats()["peak_bytes"]),
                life=life,
            )
            for number, life in enumerate(lives)
        ]
        peaks = sum(server.peak_bytes for server in servers)
        self.counts.note(f"at work all of them have {in_gib(peaks)}")
        actions = RandomActions(self.broker, fleet, servers, self.counts)
        begin = time.monotonic()
        end = min(begin + self.options.seconds, self.ends_at - _END_SECONDS)
        under_way = await self._all_until(actions, begin, end)
        self.load_seconds = round(time.monotonic() - begin, 1)
        self.counts.note(f"{self.load_seconds} s of load; {len(under_way)} things under way")
        if self.load_seconds < self.options.seconds / 2:
            self.counts.fault(f"too short a load: {self.options.seconds:g} s were asked for")
        if under_way:
            left = self.ends_at - _AFTER_ANSWERS_SECONDS - time.monotonic()
            _, late = await asyncio.wait(under_way, timeout=max(1.0, left))
            for task in late:
                self.counts.fault(f"not done at the end: {task.get_name()}")
                task.cancel()
        await self._ask_all_again(actions, servers)
        for server in servers:
            if server.life is not None:
                server.life.client.close()

    async def _all_until(
        self, actions: RandomActions, begin: float, end: float
    ) -> set[asyncio.Task[None]]:
        """Begins each action when it is due; those that are not done."""
        under_way: set[asyncio.Task[None]] = set()
        say_at = begin + 30
        for action in self.plan:
            due = begin + action.at
            if due >= end:
                break
            if action.what == "kill" and due >= end - self.shape.start_seconds:
                continue
            if (early := due - time.monotonic()) > 0:
                await asyncio.sleep(early)
            task = asyncio.create_task(actions.do(action), name=str(action))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            if due >= say_at:
                say_at += 30
                self.counts.say(f"{len(self.counts.answers)} requests, {dict(self.counts.did)}")
        await asyncio.sleep(max(0.0, end - time.monotonic()))
        return under_way

    async def _ask_all_again(
        self, actions: RandomActions, servers: Sequence[RandomServer]
    ) -> None:
        """Every batch of every server once more, when all is quiet."""
        for server in servers:
            for batch in server.expected:
                await actions.do(Action(0.0, "request", server.number, batch))

    def _end_broker(self) -> None:
        self._code("the broker", self.broker.stop())

    def _code(self, who: str, code: int) -> None:
        if code != 0:
            self.counts.fault(f"{who} ended with {code}")

    def _later(self, look: all_back.Look) -> None:
        """To be seen until 3 s before the end."""
        for wrong in all_back.patiently(look, self.ends_at - 3):
            self.counts.fault(f"not back: {wrong}")

    def kill(self) -> None:
        for server in self.fleet.servers if self.fleet is not None else ():
            server.signal(signal.SIGKILL)
        self.broker.kill()
        self.keeper.kill()

    def report(self) -> bool:
        """Prints and writes what there is; whether nothing was wrong."""
        counts, out = self.counts, self.options.out
        kinds = self.conditions.servers.kinds
        log = out / "gmbd.log"
        if self.conditions.servers.unchanged and log.exists():
            counts.answers = mark_restores(counts.answers, restores_of(log))
        write_answers(out / "answers.jsonl", counts.answers)
        write_answers(out / "excused.jsonl", counts.excused)
        times, nbytes = moves_of(log) if log.exists() else ({}, {})
        result = {
            "seed": self.options.seed[0],
            "load_seconds": self.load_seconds,
            "machine": machine(self.conditions),
            **counts.as_json(),
            "events": dict(times),
            "event_bytes": dict(nbytes),
        }
        (out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        print("\n".join([*did_lines(counts), *request_table(counts.answers, kinds)]))
        for word in ("evicted", "restored"):
            print(f"{word}: {times.get(word, 0)} leases of {in_gib(nbytes.get(word, 0))} in all")
        print("other events: " + ", ".join(f"{n} {word}" for word, n in sorted(times.items())))
        print(f"seed {result['seed']}, {self.load_seconds} s of load, {len(counts.faults)} faults")
        return self.ended_in_order and not counts.faults


def one_seed(options: argparse.Namespace) -> bool:
    run = Run(options)
    run.counts.note(
        f"seed {options.seed[0]}: {len(run.plan)} actions in {options.seconds:g} s, "
        f"{options.models} {options.servers} on {options.device}"
    )

    def give_up() -> None:
        faulthandler.dump_traceback()
        with contextlib.suppress(Exception):  # the others go on meanwhile
            run.report()
        run.kill()
        print("random load: FAILED: not done in time", flush=True)
        os._exit(1)

    timer = threading.Timer(options.within, give_up)
    timer.daemon = True
    timer.start()
    try:
        run.run()
    except (Problem, RuntimeError, OSError) as error:
        run.counts.fault(f"given up: {type(error).__name__}: {error}")
    finally:
        run.kill()
        good = run.report()
    return good


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
