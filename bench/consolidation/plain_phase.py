"""Plain device memory on a GPU: alone, split evenly, first come first served, and roomy."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Sequence

from alone import Alone, run_alone
from conditions import Conditions
from fleet import Fleet
from machine import device_memory
from record import Record
from trial import run_trial

_BALLAST = pathlib.Path(__file__).resolve().parent / "ballast.py"
_PLAIN_COPY = _BALLAST.with_name("plain_copy.py")
# Models that are tried beyond a split, where the kinds take less than the largest peak.
_MOST_MORE = 4
# Servers, when it is not known yet how many a split serves.
_SERVERS = 9


class Ballast:
    """Leaves a card's bytes on the device, while it is in."""

    def __init__(self, conditions: Conditions) -> None:
        command = [sys.executable, "-B", str(_BALLAST), "--leave", str(conditions.card_bytes)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.said = ""

    def __enter__(self) -> Ballast:
        assert self._process.stdout is not None
        self.said = self._process.stdout.readline().strip()
        if not self.said.startswith("holding"):
            self._process.kill()
            raise RuntimeError(f"no ballast: it ended with {self._process.wait()}")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it has nothing to put in order
        self._process.wait()


def run_plain(
    record: Record, modes: set[str], factors: Sequence[int], keep_going: bool, alone_models: int
) -> None:
    """One set of processes for all modes: what differs is what they may have."""
    count = _SERVERS if record.split is None else record.split + 2
    fleet = Fleet(record.conditions, "plain", max(count, len(record.conditions.servers.kinds)))
    try:
        fleet.wait_until_ready()
        record.note(f"{len(fleet.servers)} plain servers ready; {device_memory(record.conditions)}")
        if "alone" in modes:
            record.add_alone(run_alone(record.conditions, fleet, alone_models), alone_models)
        if "static" in modes and not record.conditions.servers.unchanged:
            _climb(record, fleet, "static", keep_going)
        if "native" in modes:
            if record.conditions.servers.unchanged:  # JAX keeps what it had
                record.note(f"plain servers ended with {fleet.stop()}")
                fleet = Fleet(record.conditions, "plain", record.split_models() + _MOST_MORE)
                fleet.wait_until_ready()
            fleet.unload()
            with Ballast(record.conditions) as ballast:
                record.note(f"ballast: {ballast.said}")
                _climb(record, fleet, "native", keep_going)
        if "roomy" in modes:
            for factor in factors:
                _all_at_once(record, fleet, factor * record.split_models())
    finally:
        record.note(f"plain servers ended with {fleet.stop()}")


def run_alone_again(record: Record, models: int) -> Alone:
    """When all else is over, with processes of its own."""
    fleet = Fleet(record.conditions, "plain", len(record.conditions.servers.kinds))
    try:
        fleet.wait_until_ready()
        return run_alone(record.conditions, fleet, models, "alone-after")
    finally:
        record.note(f"plain servers ended with {fleet.stop()}")


def plain_copy_rate(record: Record) -> float | None:
    """Bytes a millisecond; None, with a note, where it cannot be measured."""
    done = subprocess.run(
        [sys.executable, "-B", str(_PLAIN_COPY)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        record.note(f"no plain copy to compare with: {why}")
        return None
    rate = float(done.stdout)
    record.note(f"plain copy to the device: {rate / 1e6:.1f} GB/s")
    return rate


def _climb(record: Record, fleet: Fleet, mode: str, keep_going: bool) -> None:
    """One model more each time, until one is refused."""
    for models in range(record.split_models(), len(fleet.servers) + 1):
        fleet.unload()
        share = record.conditions.card_bytes // models if mode == "static" else None
        trial = run_trial(record.conditions, fleet, mode, models, share, replay_anyway=keep_going)
        record.add(trial)
        if not trial.all_served():
            return


def _all_at_once(record: Record, fleet: Fleet, models: int) -> None:
    """As many models as the broker gets, and memory for them all: they share the GPU's time."""
    fleet.grow(models)
    fleet.wait_until_ready()
    fleet.unload()
    record.note(f"{models} plain servers ready; {device_memory(record.conditions)}")
    record.add(run_trial(record.conditions, fleet, "roomy", models))
