"""The figure: one row a trial, and whether the goals were reached."""

from __future__ import annotations

from typing import Any

import waits_table
from alone import Alone
from load.summary import summarise
from trial import Trial


def _ms(latency: dict[str, float] | None, what: str) -> str:
    return "-" if latency is None else f"{latency[what]:.1f}"


HEAD = (
    "| mode | models | served | requests/s | refused | p50 ms | p99 ms | resident p50 | "
    "resident p99 | met evicted | their p99 | restore p50 | p99 | memory held | at work |"
)


def row(trial: Trial) -> str:
    if not trial.answers:
        first = next(iter({**trial.refused_first, **trial.not_loaded}.values()), "")
        return (
            f"| {trial.mode} | {trial.models} | {len(trial.served())} | not replayed: "
            f"{len(trial.not_loaded)} not loaded, {len(trial.refused_first)} refused their "
            f"first round ({first[:90]}) |"
        )
    found = summarise(trial.answers)
    restore = found["restore_wait_ms"]
    return (
        f"| {trial.mode} | {trial.models} | {len(trial.served())} "
        f"| {found['ok_per_second']:.1f} | {found['refused']} "
        f"| {_ms(found['latency_ms'], 'p50')} | {_ms(found['latency_ms'], 'p99')} "
        f"| {_ms(found['resident_latency_ms'], 'p50')} "
        f"| {_ms(found['resident_latency_ms'], 'p99')} "
        f"| {found['met_evicted'] / max(1, found['ok']) * 100:.1f} % "
        f"| {_ms(found['evicted_latency_ms'], 'p99')} "
        f"| {_ms(restore, 'p50')} | {_ms(restore, 'p99')} "
        f"| {trial.memory['mean'] * 100:.0f} % (most {trial.memory['max'] * 100:.0f}) "
        f"| {found['run_seconds'] / found['seconds'] * 100:.0f} % |"
    )


def alone_row(alone: Alone, name: str = "alone") -> str:
    found = summarise(alone.answers)
    return (
        f"| {name} | 1 | 1 | {found['ok_per_second']:.1f} | {found['refused']} "
        f"| {_ms(found['latency_ms'], 'p50')} | {_ms(found['latency_ms'], 'p99')} "
        f"| {_ms(found['latency_ms'], 'p50')} | {_ms(found['latency_ms'], 'p99')} "
        f"| - | - | - | - | - | {found['run_seconds'] / found['seconds'] * 100:.0f} % |"
    )


def table(alone: Alone, after: Alone | None, trials: list[Trial]) -> str:
    rule = "|" + " --- |" * (HEAD.count("|") - 1)
    again = [] if after is None else [alone_row(after, "alone, after")]
    return "\n".join([HEAD, rule, alone_row(alone), *again, *(row(trial) for trial in trials)])


def both_alone_said(before: Alone, after: Alone) -> str:
    """The reference is of both, so how far they agree is how sure a ratio is."""
    first, second = (summarise(a.answers)["latency_ms"]["p99"] for a in (before, after))
    return f"p99 alone before {first:.1f} ms, after {second:.1f}: {second / first:.2f}x"


def most_served(trials: list[Trial], mode: str) -> int:
    """The most models that a trial of the mode served without a refusal."""
    return max((t.models for t in trials if t.mode == mode and t.all_served()), default=0)


def goals(
    alone: Alone, trials: list[Trial], copy_bytes_per_ms: float | None = None
) -> list[dict[str, Any]]:
    """The goals of what was run, and whether they were reached."""
    found: list[dict[str, Any]] = []
    # A goal about modes that were not run (--modes) is neither reached nor missed.
    modes = {trial.mode for trial in trials}
    if {"static", "gmb"} <= modes:
        static, broker = most_served(trials, "static"), most_served(trials, "gmb")
        native = f", native {most_served(trials, 'native')}" if "native" in modes else ""
        found.append(
            {
                "goal": "at least 3x the models of a static split",
                "reached": static > 0 and broker >= 3 * static,
                "said": f"gmb {broker}, static split {static}{native}",
            }
        )
    reference = summarise(alone.answers)["latency_ms"]["p99"]
    for trial in trials:
        if trial.mode != "gmb" or not trial.answers:
            continue
        summary = summarise(trial.answers)
        resident, evicted = summary["resident_latency_ms"], summary["evicted_latency_ms"]
        if resident is not None:
            ratio = resident["p99"] / reference
            found.append(
                {
                    "goal": f"{trial.models} models: resident p99 within 1.5x of alone",
                    "reached": ratio <= 1.5,
                    "said": f"{resident['p99']:.1f} ms beside {reference:.1f}: {ratio:.2f}x",
                }
            )
        if evicted is not None and summary["restore_wait_ms"] is not None:
            usual = resident["p99"] if resident is not None else reference
            bound = usual + summary["restore_wait_ms"]["max"]
            found.append(
                {
                    "goal": f"{trial.models} models: p99 of those that met an evicted model "
                    "within the longest restore and the p99 of the others",
                    "reached": evicted["p99"] <= bound,
                    "said": f"{evicted['p99']:.1f} ms, bound {bound:.1f}",
                }
            )
        if trial.waits:
            waited_for = waits_table.summary(trial.pairs())
            whose = f"{trial.models} models"
            found += waits_table.goals(waited_for, reference, copy_bytes_per_ms, whose)
        found.append(
            {
                "goal": f"{trial.models} models: no wrong answer",
                "reached": summary["wrong"] == 0,
                "said": f"{summary['wrong']} of {summary['ok']}",
            }
        )
    return found
