"""Several random loads at once on one device, each with a broker of its own."""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import time

import all_back
from machine import memory_used

_PROGRAM = pathlib.Path(__file__).resolve().parent / "random_load.py"
_DEVICE_PATIENCE = 3.0


def seeds_at_once(options: argparse.Namespace) -> bool:
    """This command line again for each seed, with the output in a folder of its own."""
    deadline = time.monotonic() + options.within
    is_gpu = options.device == "cuda"
    before = memory_used() if is_gpu else None
    loads = {seed: _started(options, seed) for seed in options.seed}
    try:
        codes = {seed: load.wait(options.within + 5) for seed, load in loads.items()}
    finally:
        for load in loads.values():
            load.terminate()
    for seed in loads:
        said = _folder(options, seed) / "random.txt"
        print(f"\n---- seed {seed}: {said.read_text(errors='replace')}", flush=True)
    for seed, code in codes.items():
        print(f"seed {seed}: {'nothing wrong' if code == 0 else f'FAILED with {code}'}")
    look = all_back.device_is_free(before)
    end = max(deadline, time.monotonic() + _DEVICE_PATIENCE)
    wrong = all_back.patiently(look, end) if is_gpu else []
    for text in wrong:
        print(f"not back: {text}")
    return not wrong and not any(codes.values())


def _folder(options: argparse.Namespace, seed: int) -> pathlib.Path:
    folder: pathlib.Path = options.out / f"seed-{seed}"
    return folder


def _started(options: argparse.Namespace, seed: int) -> subprocess.Popen[bytes]:
    folder = _folder(options, seed)
    folder.mkdir(parents=True, exist_ok=True)
    # The last one of an option counts.
    own = ["--seed", str(seed), "--out", str(folder), "--beside-others"]
    command = [sys.executable, "-B", str(_PROGRAM), *sys.argv[1:], *own]
    with (folder / "random.txt").open("wb") as said:
        return subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
