"""One random load: a broker with its keeper, the servers, the load, and what is left at the end."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Sequence

import all_back
from conditions import Conditions, in_gib
from fleet import Fleet
from kept_broker import Keeper, KeptBroker
from load.bursts import model_name
from machine import device_memory, memory_used
from random_actions import RandomActions
from random_counts import Counts
from random_plan import Shape, make_plan
from random_play import play
from random_server import Life, RandomServer, warm
from servers import launcher

# Of the time in all, what the end may take: the last answers, the servers' ends, the checks.
_END_SECONDS = 25.0
_AFTER_ANSWERS_SECONDS = 15.0
_AFTER_CHECKS_SECONDS = 3.0


class RandomRun:
    def __init__(
        self, conditions: Conditions, shape: Shape, host_pool_bytes: int, within: float
    ) -> None:
        """`within`: seconds for all of it."""
        self._ends_at = time.monotonic() + within
        self._conditions = conditions
        self._shape = shape
        self._plan = make_plan(shape)
        self._keeper = Keeper(conditions.programs, conditions.out / "keeper.log")
        names = [model_name(number) for number in range(shape.models)]
        self._broker = KeptBroker(
            conditions.programs,
            device="cuda:0" if conditions.device == "cuda" else conditions.device,
            pool=conditions.card_bytes,
            host_pool=host_pool_bytes,
            tenants={name: {"limit": "100%"} for name in names},
            arguments=["--keeper", str(self._keeper.socket)],
            log=conditions.out / "gmbd.log",
            await_host_pool=False,  # meanwhile the servers start
        )
        self._fleet: Fleet | None = None
        self.counts = Counts(conditions.out)
        self.load_seconds = 0.0
        self.counts.note(
            f"seed {shape.seed}: {len(self._plan)} actions in {shape.seconds:g} s, "
            f"{shape.models} servers on {conditions.device}"
        )

    def run(self, alone: bool) -> None:
        """`alone`: nobody else uses the device. Faults are in `counts`."""
        is_checked = alone and self._conditions.device == "cuda"
        before = memory_used() if is_checked else None
        with self._keeper:
            with self._broker:
                self._with_broker()
                self._ended_well("the broker", self._broker.stop())
            self._await_back(all_back.keeper_has_nothing(self._keeper))
            self._ended_well("the keeper", self._keeper.stop())
        if is_checked:
            self._await_back(all_back.device_is_free(before))

    def kill(self) -> None:
        """All processes, where they are."""
        for server in self._fleet.servers if self._fleet is not None else ():
            server.signal(signal.SIGKILL)
        self._broker.kill()
        self._keeper.kill()

    def _with_broker(self) -> None:
        conditions, broker = self._conditions, self._broker
        capacity = int(broker.pool()["capacity_bytes"])
        self.counts.note(f"the broker answers: a pool of {in_gib(capacity)}")
        launch = launcher(broker.command) if conditions.servers.unchanged else None
        fleet = Fleet(conditions, "gmb", self._shape.models, str(broker.socket_dir), launch)
        self._fleet = fleet
        try:
            lives = self._first_lives(fleet)
            pool = broker.prepared_host_pool()
            self.counts.note(
                f"{len(lives)} servers loaded; host pool {in_gib(pool['bytes'])}, "
                f"locked {in_gib(pool['locked_bytes'])} {pool['problem']}; "
                f"{device_memory(conditions)}"
            )
            asyncio.run(self._load(fleet, lives))
        finally:
            codes = fleet.stop()
            self.counts.note(f"servers ended with {codes}")
        for server, code in zip(fleet.servers, codes):
            self._ended_well(server.name, code)
        self._await_back(all_back.broker_has_all(broker, capacity))
        self._await_back(all_back.keeper_has_no_client(self._keeper))
        (conditions.out / "status.json").write_text(json.dumps(broker.ask("status")) + "\n")

    def _first_lives(self, fleet: Fleet) -> list[Life]:
        """One after the other: each has all that the ones before leave, or lend."""
        lives = []
        for server in fleet.servers:
            sums, refused = warm(server, self._conditions.batches, self._ends_at)
            self.counts.did["load_refused"] += refused
            lives.append(Life(server, sums))
        return lives

    async def _load(self, fleet: Fleet, lives: Sequence[Life]) -> None:
        servers = [
            RandomServer(
                number=number,
                name=life.server.name,
                kind=self._conditions.servers.kind_of(number),
                expected=life.sums,
                peak_bytes=int(life.server.stats()["peak_bytes"]),
                life=life,
            )
            for number, life in enumerate(lives)
        ]
        peaks = sum(server.peak_bytes for server in servers)
        self.counts.note(f"all of them at work have {in_gib(peaks)}")
        began = time.monotonic()
        until = min(began + self._shape.seconds, self._ends_at - _END_SECONDS)
        self.load_seconds = round(until - began, 1)
        if self.load_seconds < self._shape.seconds / 2:
            self.counts.fault(f"{self.load_seconds} s of load: the start took too long")
        await play(
            self._plan,
            RandomActions(self._broker, fleet, servers, self.counts),
            servers,
            self.counts,
            until=until,
            start_seconds=self._shape.start_seconds,
            answers_until=self._ends_at - _AFTER_ANSWERS_SECONDS,
        )
        self.counts.note("the load is over, and all servers were asked again")

    def _ended_well(self, who: str, code: int) -> None:
        if code != 0:
            self.counts.fault(f"{who} ended with {code}")

    def _await_back(self, look: all_back.Look) -> None:
        for wrong in all_back.patiently(look, self._ends_at - _AFTER_CHECKS_SECONDS):
            self.counts.fault(f"not back: {wrong}")
