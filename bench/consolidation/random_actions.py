"""The actions of a random load: requests, and what is done to servers, limits and the broker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from conditions import MIB
from fleet import Fleet
from kept_broker import KeptBroker
from load.answer import Answer
from local_server import ServerError
from outages import CALL_WAITS_SECONDS, Outages
from random_counts import Counts
from random_plan import Action
from random_server import Life, RandomServer, processes_of, start_again

_ANSWER_WITHIN = 45.0
_MOST_UNDER_WAY = 16  # of one server
_START_WITHIN = 60.0
_OPERATOR_WITHIN = 20.0
_NO_BROKER = 3  # the gmb command's exit code


def _signal(processes: Sequence[int], number: int) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):  # it may be killed meanwhile
            os.kill(pid, number)


class RandomActions:
    """One coroutine for each kind of action, all on one event loop."""

    def __init__(
        self,
        broker: KeptBroker,
        fleet: Fleet,
        servers: Sequence[RandomServer],
        counts: Counts,
    ) -> None:
        self._broker = broker
        self._fleet = fleet
        self._servers = servers
        self._counts = counts
        self._outages = Outages()
        self._begin = time.monotonic()
        self._deaths = asyncio.Lock()

    async def do(self, action: Action) -> None:
        try:
            await getattr(self, f"_{action.what}")(action)
        except Exception as error:  # the load goes on, and ends as failed
            self._counts.fault(f"{action}: {type(error).__name__}: {error}")

    async def _request(self, action: Action) -> None:
        server = self._servers[action.model]
        await server.asked.wait()
        life = server.life
        if life is None or server.under_way >= _MOST_UNDER_WAY:
            self._counts.did["not_sent" if life is None else "too_many"] += 1
            return
        server.under_way += 1
        try:
            await self._ask(server, life, int(action.amount))
        finally:
            server.under_way -= 1

    async def _ask(self, server: RandomServer, life: Life, batch: int) -> None:
        sent, sent_at = time.monotonic(), time.time()
        status, said, in_time = 0, {}, True
        try:
            post = life.client.post("/infer", {"batch": batch})
            status, said = await asyncio.wait_for(post, _ANSWER_WITHIN)
        except asyncio.TimeoutError:
            said, in_time = {"error": f"no answer within {_ANSWER_WITHIN:g} s"}, False
        except (OSError, EOFError, ValueError) as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        given = str(said.get("sum", ""))
        answer = Answer(
            model=server.name,
            batch=batch,
            due_ms=round((sent - self._begin) * 1000, 3),
            late_ms=0.0,
            latency_ms=round((time.monotonic() - sent) * 1000, 3),
            ok=status == 200,
            error="" if status == 200 else str(said.get("error", f"status {status}")),
            sum=given,
            met_evicted=bool(said.get("met_evicted", False)),
            wait_ms=float(said.get("wait_ms", 0.0)),
            run_ms=float(said.get("run_ms", 0.0)),
            sent_at=sent_at,
            right=status != 200 or given == server.expected[batch],
        )
        # A call ends after its own wait, also without a broker.
        outage = self._outages.longest(sent) if in_time else 0.0
        self._judge(answer, server, life, outage)

    def _judge(self, answer: Answer, server: RandomServer, life: Life, outage: float) -> None:
        if answer.ok or not (life.killed or outage > CALL_WAITS_SECONDS):
            self._counts.answers.append(answer)
        else:
            self._counts.excused.append(answer)
            why = "failed_with_server" if life.killed else "failed_without_broker"
            self._counts.did[why] += 1
            return
        where = f"{server.name}, {server.kind}, batch {answer.batch}, process {server.lives}"
        if not answer.ok:
            self._counts.fault(f"{where}: {answer.error}")
        elif not answer.right:
            first = "as" if answer.sum == life.sums.get(answer.batch) else "not as"
            self._counts.fault(
                f"{where}: WRONG: {answer.sum}, expected {server.expected[answer.batch]}; "
                f"{first} this process answered at first"
            )

    async def _kill(self, action: Action) -> None:
        server = self._servers[action.model]
        async with server.busy:
            life = server.life
            if life is None:  # it could not be started
                self._counts.did["left_out"] += 1
                return
            server.life = None
            life.killed = True
            self._counts.did["kill"] += 1
            began = time.monotonic()
            await asyncio.to_thread(life.server.kill)
            life.client.close()
            server.life = await self._started(server)
            if server.life is not None:
                self._counts.starts.append(round(time.monotonic() - began, 3))

    async def _started(self, server: RandomServer) -> Life | None:
        """None, with a fault, when it does not start."""
        deadline = time.monotonic() + _START_WITHIN
        while True:
            began = time.monotonic()
            server.lives += 1
            try:
                life, refused = await asyncio.to_thread(
                    start_again,
                    *(self._fleet, server.number, server.lives, list(server.expected), deadline),
                )
            except ServerError as error:
                # `gmb run` and a connect wait for a broker for 2 s.
                if self._outages.any_since(began) and time.monotonic() < deadline:
                    self._counts.did["start_repeated"] += 1
                    continue
                self._counts.fault(f"started again: {error}")
                return None
            self._counts.did["load_refused"] += refused
            for batch, given in life.sums.items():
                if given != server.expected[batch]:
                    self._counts.fault(
                        f"{server.name}, {server.kind}, batch {batch}, process {server.lives}, "
                        f"just started: WRONG: {given}, expected {server.expected[batch]}"
                    )
            return life

    async def _stop(self, action: Action) -> None:
        life = self._servers[action.model].life
        if life is None:
            self._counts.did["left_out"] += 1
            return
        self._counts.did["stop"] += 1
        processes = processes_of(life.server)
        try:
            _signal(processes, signal.SIGSTOP)
            await asyncio.sleep(action.seconds)
        finally:
            _signal(processes, signal.SIGCONT)

    async def _gmb(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self._broker.run, "--output", "json", *arguments)

    async def _reclaim(self, action: Action) -> None:
        server = self._servers[action.model]
        began = time.monotonic()
        words = ["reclaim", server.name, "--wait", f"{action.seconds * 1000:.0f}ms"]
        if action.amount > 0:
            words += ["--bytes", str(max(1, int(server.peak_bytes * action.amount)))]
        done = await self._gmb(*words)
        self._counts.did["reclaim"] += 1
        if done.returncode in (0, 1) and done.stdout.strip():  # 1: not all of it
            answer: dict[str, Any] = json.loads(done.stdout)
            self._counts.reclaimed_bytes += int(answer["reclaimed_bytes"])
        elif done.returncode == _NO_BROKER and self._outages.any_since(began):
            self._counts.did["reclaim_cut_off"] += 1
        else:
            self._counts.fault(f"gmb {' '.join(words)}: {done.returncode}: {done.stderr.strip()}")

    async def _limit(self, action: Action) -> None:
        """Another limit, and back to 100 %. Below what the server has, nobody asks it meanwhile."""
        server = self._servers[action.model]
        if server.busy.locked() or server.life is None:
            self._counts.did["left_out"] += 1
            return
        async with server.busy:
            below = action.amount < 1
            try:
                if below:
                    server.asked.clear()
                    if not await self._idle(server):
                        self._counts.did["left_out"] += 1
                        return
                self._counts.did["limit_below" if below else "limit_above"] += 1
                granules = max(1, int(server.peak_bytes * action.amount) // (2 * MIB))
                await self._set_limit(server, str(granules * 2 * MIB))
                await asyncio.sleep(action.seconds)
                await self._set_limit(server, "100%")
            finally:
                server.asked.set()

    async def _idle(self, server: RandomServer) -> bool:
        deadline = time.monotonic() + 10
        while server.under_way > 0:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.005)  # between two looks
        return True

    async def _set_limit(self, server: RandomServer, limit: str) -> None:
        """Again where the broker dies of it: it may have been set, or not."""
        deadline = time.monotonic() + _OPERATOR_WITHIN
        while True:
            began = time.monotonic()
            done = await self._gmb("tenant", "set", server.name, "--limit", limit, "--yes")
            if done.returncode == 0:
                return
            cut_off = done.returncode == _NO_BROKER and self._outages.any_since(began)
            if not cut_off or time.monotonic() > deadline:
                said = done.stderr.strip()
                self._counts.fault(f"limit {limit} of {server.name}: {done.returncode}: {said}")
                return

    async def _kill_broker(self, action: Action) -> None:
        async with self._deaths:
            self._counts.did["kill_broker"] += 1
            with self._outages.one():
                began = time.monotonic()
                await asyncio.to_thread(self._broker.replace, action.seconds)
            self._counts.outages.append(round(time.monotonic() - began, 3))
