"""The broker's pool as the card. On the host device also what plain memory is for a GPU."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from alone import Alone, run_alone
from broker_events import Event, Watching
from bus import restored_bytes
from conditions import GIB, MIB, Conditions, in_gib
from fleet import Fleet
from load.bursts import model_name
from local_broker import Broker
from machine import device_memory, memory_available
from record import Record
from moves import moves_of
from restores import mark_restores, times_of
from servers import launcher
from trial import Trial, run_trial
from waits import waits_of, write_waits

# Of host memory, what a server takes for itself at most: with PyTorch and a context, without.
_PROCESS_BYTES = {"cuda": 3 * GIB, "host": 64 * MIB}


@dataclass(frozen=True)
class BrokerOptions:
    host_pool_bytes: int
    further: Sequence[str] = ()  # arguments of gmbd


@contextmanager
def _started(
    record: Record, options: BrokerOptions, count: int, most: int, log: str
) -> Iterator[tuple[Broker, Fleet]]:
    """A broker whose pool is the card, for `most` tenants that may have all; `count` servers."""
    conditions = record.conditions
    with Broker(
        conditions.programs,
        device="cuda:0" if conditions.device == "cuda" else conditions.device,
        pool=conditions.card_bytes,
        host_pool=options.host_pool_bytes,
        tenants={model_name(number): {"limit": "100%"} for number in range(most)},
        arguments=options.further,
        log=conditions.out / log,
        await_host_pool=False,  # meanwhile the servers start
    ) as broker:
        record.note("the broker answers")
        launch = launcher(broker.command) if conditions.servers.unchanged else None
        fleet = Fleet(conditions, "gmb", count, str(broker.socket_dir), launch)
        try:
            fleet.wait_until_ready()
            record.note(f"{count} servers on gmb ready")
            yield broker, fleet
        finally:
            record.note(f"servers on gmb ended with {fleet.stop()}")


def run_broker(
    record: Record, options: BrokerOptions, factors: Sequence[int], static: bool
) -> None:
    """So many times the models of a split, until one is refused. `static`: the split as well."""
    split = record.split_models()
    most = max(factors) * split
    with _started(record, options, split, most, "gmbd.log") as (broker, fleet), Watching(
        broker, model_name(0), record.conditions.out / "gmb.events.jsonl"
    ) as watching:
        _wait_for_host_pool(record, broker)
        if static:
            _split(record, broker, fleet)
            fleet.unload()
        for factor in factors:
            if not _grow(record, fleet, factor * split):
                return
            trial = _replay(record, broker, watching, fleet, factor * split)
            status = {"status": broker.ask("status"), "leases": broker.ask("lease", "list")}
            place = record.conditions.out / f"gmb-{trial.models}.status.json"
            place.write_text(json.dumps(status) + "\n")
            if not trial.all_served():
                return
            for trace in record.conditions.more_traces if factor == max(factors) else ():
                again = replace(record.conditions, trace=trace)
                models = factor * split
                _replay(record, broker, watching, fleet, models, again, trial.expected)


def _replay(
    record: Record,
    broker: Broker,
    watching: Watching,
    fleet: Fleet,
    models: int,
    again: Conditions | None = None,
    expected: dict[tuple[str, int], str] | None = None,
) -> Trial:
    """`again`: with another trace, and the answers of before."""
    conditions = again or record.conditions
    unchanged = conditions.servers.unchanged
    held = (lambda: int(broker.pool()["granted_bytes"])) if unchanged else None
    began = time.time()
    trial = run_trial(conditions, fleet, "gmb", models, expected=expected, held=held)
    if trial.answers:
        events = watching.events(began, time.time())
        if unchanged:
            trial.answers = mark_restores(trial.answers, times_of(events))
        _explain(conditions, trial, events)
    record.add(trial)
    return trial


def _explain(conditions: Conditions, trial: Trial, events: list[Event]) -> None:
    """Sets what each of its requests waited for."""
    trial.waits = waits_of(trial.answers, moves_of(events))
    sent = min(answer.sent_at for answer in trial.answers)
    trial.restored_bytes = restored_bytes(events, (sent, sent + conditions.seconds))
    trial.missed_events = sum(event.missed for event in events)
    place = conditions.out / f"gmb-{trial.models}-seed-{trial.seed}.waits.jsonl"
    write_waits(place, trial.answers, trial.waits)


def _grow(record: Record, fleet: Fleet, count: int) -> bool:
    """False, with a note, when the machine has not the memory for so many processes."""
    available, more = memory_available(), count - len(fleet.servers)
    needed = more * _PROCESS_BYTES[record.conditions.device]
    if needed > available:
        record.note(
            f"{count} models were not tried: {in_gib(available)} of host memory are left, "
            f"{more} more processes may take {in_gib(needed)}"
        )
        return False
    fleet.grow(count)
    fleet.wait_until_ready()
    record.note(
        f"{count} servers on gmb ready; {device_memory(record.conditions)}; "
        f"{in_gib(memory_available())} of host memory left"
    )
    return True


def _wait_for_host_pool(record: Record, broker: Broker) -> None:
    """Page-locking takes a while, in the background; copies before that would be slower."""
    pool = broker.prepared_host_pool()
    record.note(f"host pool {in_gib(pool['bytes'])}, locked {in_gib(pool['locked_bytes'])}")


def run_host_alone(record: Record, host_pool_bytes: int, models: int, name: str) -> Alone:
    """One model at a time on the card."""
    options = BrokerOptions(host_pool_bytes)
    kinds = len(record.conditions.servers.kinds)
    with _started(record, options, kinds, kinds, f"gmbd-{name}.log") as (_, fleet):
        return run_alone(record.conditions, fleet, models, name)


def _split(record: Record, broker: Broker, fleet: Fleet) -> None:
    """A split is a limit on each tenant."""
    for models in range(record.split_models(), record.split_models() + 2):
        share = record.conditions.card_bytes // models // (2 * MIB) * (2 * MIB)
        fleet.grow(models)
        fleet.wait_until_ready()
        fleet.unload()
        names = [server.name for server in fleet.servers[:models]]
        for name in names:
            broker.ask("tenant", "set", name, "--limit", str(share), "--yes")
        trial = run_trial(record.conditions, fleet, "static", models)
        record.add(trial)
        for name in names:
            broker.ask("tenant", "set", name, "--limit", "100%")
        if not trial.all_served():
            return
