#!/usr/bin/env python3
"""Replays a trace (README.md) against model servers that are running, and sums up.

replay_trace.py --trace FILE --target m00=127.0.0.1:8000 [--target ...] [--out FOLDER]

The requests of models that have no target are left out. Ends with 1 when a request was
refused, or a model gave two different answers to the same batch.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from load.answer import Answer, write_answers  # noqa: E402
from load.replay import Target, replay  # noqa: E402
from load.summary import by_model, summarise  # noqa: E402
from load.trace import read_trace  # noqa: E402


def target(text: str) -> tuple[str, Target]:
    name, _, place = text.partition("=")
    host, _, port = place.rpartition(":")
    if not name or not host or not port.isdigit():
        raise argparse.ArgumentTypeError(f"not MODEL=HOST:PORT: {text}")
    return name, Target(host, int(port))


def contradictions(answers: list[Answer]) -> list[str]:
    """Models and batches that were not always answered alike."""
    sums: dict[tuple[str, int], set[str]] = {}
    for answer in answers:
        if answer.ok:
            sums.setdefault((answer.model, answer.batch), set()).add(answer.sum)
    return [f"{model}, batch {batch}" for (model, batch), found in sums.items() if len(found) > 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", type=pathlib.Path, required=True)
    parser.add_argument("--target", type=target, action="append", required=True)
    parser.add_argument("--seconds", type=float, help="of the trace [all]")
    parser.add_argument("--out", type=pathlib.Path, help="folder for answers.jsonl, summary.json")
    options = parser.parse_args()
    targets = dict(options.target)
    trace = read_trace(options.trace).of(targets, options.seconds)
    answers = replay(trace, targets)
    summary = {
        "trace": {"file": options.trace.name, **trace.header},
        "all": summarise(answers),
        "by_model": {name: summarise(part) for name, part in by_model(answers).items()},
    }
    print(json.dumps(summary, indent=1))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_answers(options.out / "answers.jsonl", answers)
        (options.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    differ = contradictions(answers)
    for text in differ:
        print(f"different answers: {text}", file=sys.stderr)
    sys.exit(1 if differ or summary["all"]["refused"] else 0)


if __name__ == "__main__":
    main()
