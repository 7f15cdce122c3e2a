#!/usr/bin/env python3
"""Consolidation: how many bursty models one card serves, by how its memory is shared.

README.md says what is measured and how. Prints a table, and writes OUT/figure.json and the
answers of each trial.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import signal
import subprocess
import sys
import time
from typing import Any

_HERE = pathlib.Path(__file__).resolve().parent
_EXAMPLES = _HERE.parents[1] / "examples"
sys.path.insert(0, str(_EXAMPLES))

import figure
from alone import Alone, run_alone
from fleet import Fleet
from load.bursts import model_name
from load.trace import read_trace
from model_servers.broker import Broker, Programs
from conditions import MIB, Conditions, in_gib
from trial import Trial, run_trial

_DEFAULT_TRACE = _EXAMPLES / "load" / "traces" / "bursty-6.trace"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, help="folder of gmbd and gmb [PATH]")
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--trace", type=pathlib.Path, default=_DEFAULT_TRACE)
    parser.add_argument("--seconds", type=float, default=45.0, help="of the trace [45]")
    parser.add_argument(
        "--card-mib", type=int, default=24 * 1024, help="the card that is shared [24576]"
    )
    parser.add_argument(
        "--host-pool-mib", type=int, default=60 * 1024, help="gmbd's host pool [61440]"
    )
    parser.add_argument(
        "--factors",
        default="3,4",
        help="gmb is tried with so many times the static split's models [3,4]",
    )
    parser.add_argument(
        "--modes", default="alone,static,native,gmb", help="[alone,static,native,gmb]"
    )
    parser.add_argument(
        "--split", type=int, help="models of the static split [card / largest peak alone]"
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="replay where models are refused, too"
    )
    parser.add_argument("--gmbd", default="", help="further arguments of gmbd, in one word")
    return parser.parse_args()


class Run:
    """The phases, in order. What a later one needs of an earlier one is in here."""

    def __init__(self, conditions: Conditions, options: argparse.Namespace) -> None:
        self.conditions = conditions
        self.options = options
        self.modes = options.modes.split(",")
        self.alone: Alone | None = None
        self.split: int | None = options.split
        self.trials: list[Trial] = []
        self.notes: list[str] = []
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.say(text)

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        self.say(figure.row(trial))

    @property
    def factors(self) -> list[int]:
        return [int(part) for part in self.options.factors.split(",")]

    def split_models(self) -> int:
        """How many an even split of the card serves: each has the largest peak."""
        if self.split is None:
            assert self.alone is not None, "--split, or the mode alone"
            self.split = self.conditions.card_bytes // max(self.alone.peaks.values())
        return max(1, self.split)

    # --- Plain device memory: alone, split evenly, first come first served.

    def plain(self) -> None:
        # Two more than a split could serve, which alone's peaks will say.
        count = self.options.split + 2 if self.options.split else 9
        fleet = Fleet(self.conditions, "plain", count)
        try:
            fleet.wait_until_ready()
            self.note(f"{count} plain servers ready; {device_memory(self.conditions)}")
            if "alone" in self.modes:
                self.run_alone(fleet)
            if "static" in self.modes:
                self.climb(fleet, "static")
            if "native" in self.modes:
                fleet.unload()
                with Ballast(self.conditions) as ballast:
                    self.note(f"ballast: {ballast.said}")
                    self.climb(fleet, "native")
        finally:
            fleet.stop()

    def run_alone(self, fleet: Fleet) -> None:
        models = min(self.factors) * (self.options.split or 6)
        self.alone = run_alone(self.conditions, fleet, models)
        peaks = ", ".join(f"{kind} {in_gib(n)}" for kind, n in self.alone.peaks.items())
        self.note(f"alone, the requests of {models} models; peaks: {peaks}")
        self.say(figure.alone_row(self.alone))

    def climb(self, fleet: Fleet, mode: str) -> None:
        """One model more each time, until one is refused."""
        models = self.split_models()
        while models <= len(fleet.servers):
            fleet.unload()
            share = self.conditions.card_bytes // models if mode == "static" else None
            trial = run_trial(
                self.conditions, fleet, mode, models, share, replay_anyway=self.options.keep_going
            )
            self.add(trial)
            if not trial.all_served():
                return
            models += 1

    # --- The broker's.

    def broker(self) -> None:
        most = max(self.factors) * self.split_models()
        names = [model_name(number) for number in range(most)]
        with Broker(
            self.conditions.programs,
            {name: {"limit": "100%"} for name in names},
            self.broker_arguments(),
            self.conditions.out / "gmbd.log",
        ) as broker:
            broker.wait_until_it_answers()
            fleet = Fleet(self.conditions, "gmb", most, broker.socket_dir)
            try:
                fleet.wait_until_ready()
                self.wait_for_host_pool(broker)
                self.note(f"{most} servers on gmb ready; {device_memory(self.conditions)}")
                self.broker_trials(broker, fleet)
            finally:
                fleet.stop()

    def broker_trials(self, broker: Broker, fleet: Fleet) -> None:
        if self.conditions.device == "host" and "static" in self.modes:
            self.host_split(broker, fleet)
            fleet.unload()
        for factor in self.factors:
            trial = run_trial(self.conditions, fleet, "gmb", factor * self.split_models())
            self.add(trial)
            (self.conditions.out / f"gmb-{trial.models}.status.json").write_text(
                json.dumps({"status": broker.gmb("status"), "leases": broker.gmb("lease", "list")})
            )
            if not trial.all_served():
                return

    def broker_arguments(self) -> list[str]:
        card, pool = self.conditions.card_bytes, self.options.host_pool_mib * MIB
        arguments = (
            ["--device", "cuda:0", "--pool", str(card)]
            if self.conditions.device == "cuda"
            else ["--device", f"host:{card}"]
        )
        return [*arguments, "--host-pool", str(pool), *self.options.gmbd.split()]

    def wait_for_host_pool(self, broker: Broker) -> None:
        """Page-locking takes a while; models that are there already do not wait for it."""
        deadline = time.monotonic() + 120
        while not (pool := broker.gmb("status")["host_pool"])["done"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the host pool is not ready: {pool}")
            time.sleep(0.2)
        self.note(f"host pool {in_gib(pool['bytes'])}, locked {in_gib(pool['locked_bytes'])}")

    def host_split(self, broker: Broker, fleet: Fleet) -> None:
        """On the host device a split is a limit on each tenant."""
        models = self.split_models()
        while models <= len(fleet.servers):
            share = self.conditions.card_bytes // models
            fleet.unload()
            for server in fleet.servers[:models]:
                broker.gmb("tenant", "set", server.name, "--limit", str(share))
            trial = run_trial(self.conditions, fleet, "static", models)
            self.add(trial)
            for server in fleet.servers[:models]:
                broker.gmb("tenant", "set", server.name, "--limit", "100%")
            if not trial.all_served():
                return
            models += 1

    def host_alone(self) -> None:
        """One model at a time on the card, on the broker's host device."""
        names = [model_name(number) for number in range(3)]
        with Broker(
            self.conditions.programs,
            {name: {"limit": "100%"} for name in names},
            self.broker_arguments(),
            self.conditions.out / "gmbd-alone.log",
        ) as broker:
            broker.wait_until_it_answers()
            fleet = Fleet(self.conditions, "gmb", 3, broker.socket_dir)
            try:
                fleet.wait_until_ready()
                self.run_alone(fleet)
            finally:
                fleet.stop()

    def run(self) -> None:
        plain = {"alone", "static", "native"} & set(self.modes)
        if self.conditions.device == "host":
            if "alone" in self.modes:
                self.host_alone()
        elif plain:
            self.plain()
        if "gmb" in self.modes:
            self.broker()

    # --- What is left of it.

    def finish(self) -> int:
        """Prints and writes; how many goals were not reached."""
        result: dict[str, Any] = {
            "machine": machine(self.conditions),
            "trace": {"file": self.options.trace.name, **self.conditions.trace.header},
            "seconds": self.conditions.seconds,
            "card_bytes": self.conditions.card_bytes,
            "notes": self.notes,
            "trials": [trial.as_json() for trial in self.trials],
        }
        missed = 0
        if self.alone is not None:
            found = figure.goals(self.alone, self.trials)
            missed = sum(not goal["reached"] for goal in found)
            result |= {
                "alone": figure.summarise(self.alone.answers),
                "peaks": self.alone.peaks,
                "goals": found,
            }
            print(figure.table(self.alone, self.trials))
            for goal in found:
                word = "reached" if goal["reached"] else "MISSED "
                print(f"{word}  {goal['goal']}: {goal['said']}")
        (self.conditions.out / "figure.json").write_text(json.dumps(result, indent=1) + "\n")
        return missed


class Ballast:
    """Leaves a card's bytes on the device, while it is in."""

    def __init__(self, conditions: Conditions) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-B", str(_HERE / "ballast.py"), "--leave", str(conditions.card_bytes)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = ""

    def __enter__(self) -> Ballast:
        assert self._process.stdout is not None
        self.said = self._process.stdout.readline().strip()
        if not self.said.startswith("holding"):
            self._process.kill()
            raise RuntimeError(f"no ballast: it ended with {self._process.wait()}")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


def device_memory(conditions: Conditions) -> str:
    """What the device's driver says, contexts and all."""
    if conditions.device == "host":
        return "host memory"
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used,memory.total", "--format=csv,noheader"],
        capture_output=True, text=True, check=False,
    )
    return f"device memory used, of: {done.stdout.strip() or 'unknown'}"


def machine(conditions: Conditions) -> dict[str, str]:
    found = {"cpu": platform.processor() or platform.machine(), "kernel": platform.release()}
    if conditions.device == "cuda":
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=False,
        )
        found["gpu"] = done.stdout.strip()
    return found


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
    )
    run = Run(conditions, options)
    run.note(
        f"trace {options.trace.name}, seed {trace.header.get('seed')}, {conditions.seconds:g} s; card "
        f"{in_gib(conditions.card_bytes)}"
    )
    try:
        run.run()
    finally:
        missed = run.finish()
    sys.exit(min(missed, 100))


if __name__ == "__main__":
    main()
