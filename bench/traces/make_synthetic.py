#!/usr/bin/env python3
"""Writes the traces that are made up (README.md): the same ones every time.

    make_synthetic.py --out DIR
"""

import argparse
import pathlib
import random
import sys

import trace_file


class Writer:
    def __init__(self):
        self.lines, self.blocks = [], 0

    def allocate(self, size, stream=0):
        self.lines.append(f"+ {size} {stream}" if stream else f"+ {size}")
        self.blocks += 1
        return self.blocks - 1

    def free(self, block):
        self.lines.append(f"- {block}")


def decode(seed):
    """Weights; then requests whose caches grow token by token, in any order."""
    chance, trace = random.Random(seed), Writer()
    layers, width = 6, 1024
    for _ in range(layers):
        for size in (6 * width * width, 2 * width * width, 8 * width * width, 8 * width * width, 4 * width):
            trace.allocate(size)
    requests = {}
    for step in range(120):
        if len(requests) < 6 and chance.random() < 0.3:
            requests[step] = [chance.randint(16, 700), chance.randint(8, 60), []]
        for key in list(requests):
            length, left, caches = requests[key]
            work = trace.allocate(2 * width * (length if not caches else 1))
            grown = []
            for _ in range(layers):
                grown.append(trace.allocate(4 * width * length))
                inner = trace.allocate(8 * width)
                trace.free(inner)
            for cache in caches:
                trace.free(cache)
            trace.free(work)
            requests[key] = [length + 1, left - 1, grown]
            if left <= 1:
                for cache in grown:
                    trace.free(cache)
                del requests[key]
    return trace.lines


def images(seed):
    """Batches of changing size: inputs on a second stream, activations that live for two layers."""
    chance, trace = random.Random(seed), Writer()
    for width in (64, 128, 256, 512):
        for _ in range(4):
            trace.allocate(9 * width * width * 2)
            trace.allocate(2 * width)
    for _ in range(90):
        batch, side = chance.choice((1, 2, 8, 32)), chance.choice((160, 224, 320))
        last = trace.allocate(batch * 3 * side * side * 2, stream=1)
        for width in (64, 64, 128, 128, 256, 256, 512, 512):
            pixels = max(7, side * 32 // width) ** 2 // 4
            space = trace.allocate(chance.choice((0, 1 << 20, 8 << 20)) + 512)
            now = trace.allocate(batch * width * pixels * 2)
            trace.free(space)
            trace.free(last)
            last = now
        answer = trace.allocate(batch * 4000)
        trace.free(last)
        trace.free(answer)
    return trace.lines


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    out = parser.parse_args(argv).out
    out.mkdir(parents=True, exist_ok=True)
    for name, make in (("synthetic-decode", decode), ("synthetic-images", images)):
        trace_file.write(out / f"{name}.trace", f"synthetic, seed 1: {make.__doc__}", make(1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
