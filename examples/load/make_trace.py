#!/usr/bin/env python3
"""Writes a request trace (README.md); the same one for the same options.

make_trace.py --out FILE [--seed N] [--models N] [--seconds S] [...]
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from dataclasses import fields

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from load.bursts import Shape, make_trace  # noqa: E402
from load.trace import write_trace  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    for field in fields(Shape):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=type(field.default),
            default=field.default,
            help=f"[{field.default}]",
        )
    given = vars(parser.parse_args())
    out = given.pop("out")
    shape = Shape(**given)
    trace = make_trace(shape)
    write_trace(out, trace)
    per_model = len(trace.requests) / shape.models / shape.seconds
    print(
        f"{out}: seed {shape.seed}, {len(trace.requests)} requests to {shape.models} models in "
        f"{shape.seconds:g} s, {per_model:.2f} a second and model"
    )


if __name__ == "__main__":
    main()
