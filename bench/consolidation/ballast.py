#!/usr/bin/env python3
"""Holds the device memory that is not part of the card, for the mode without a split.

ballast.py --leave BYTES: takes all but that, prints `holding BYTES`, and holds it until it is killed.
"""

from __future__ import annotations

import argparse
import signal

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leave", type=int, required=True)
    leave = parser.parse_args().leave
    torch.cuda.synchronize()  # the context is there: what is free now is what others can have
    free = torch.cuda.mem_get_info()[0]
    held = torch.empty(max(0, free - leave), dtype=torch.uint8, device="cuda")
    left = torch.cuda.mem_get_info()[0]
    print(f"holding {held.numel()} left {left}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
