"""Plays a plan on the servers, action by action, and asks everything again when it is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from random_actions import RandomActions
from random_counts import Counts
from random_plan import Action
from random_server import RandomServer

_SAY_EVERY_SECONDS = 30.0


async def play(
    plan: Sequence[Action],
    actions: RandomActions,
    servers: Sequence[RandomServer],
    counts: Counts,
    *,
    until: float,
    start_seconds: float,
    answers_until: float,
) -> None:
    """Times of time.monotonic(): no action begins after `until`, none is waited for longer than
    `answers_until`. Servers are not killed in the last `start_seconds`.
    """
    # Each blocks a thread at times: servers that start, commands of operators.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
    begin = time.monotonic()
    under_way: set[asyncio.Task[None]] = set()
    say_at = begin + _SAY_EVERY_SECONDS
    for action in plan:
        due = begin + action.at
        if due >= until:
            break
        if action.what == "kill" and due >= until - start_seconds:
            continue
        if (early := due - time.monotonic()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(actions.do(action), name=str(action))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        if due >= say_at:
            say_at += _SAY_EVERY_SECONDS
            counts.say(f"{len(counts.answers)} requests, {dict(counts.did)}")
    await asyncio.sleep(max(0.0, until - time.monotonic()))
    if under_way:
        left = max(1.0, answers_until - time.monotonic())
        _, late = await asyncio.wait(set(under_way), timeout=left)
        for task in late:
            counts.fault(f"not done at the end: {task.get_name()}")
            task.cancel()
    await _ask_all_again(actions, servers)


async def _ask_all_again(actions: RandomActions, servers: Sequence[RandomServer]) -> None:
    """Every batch of every server once more, when all is quiet."""
    for server in servers:
        for batch in server.expected:
            await actions.do(Action(0.0, "request", server.number, batch))
        if server.life is not None:
            server.life.client.close()
