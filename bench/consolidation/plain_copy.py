#!/usr/bin/env python3
"""Prints how many bytes a millisecond a plain copy from page-locked memory to the GPU does."""

from __future__ import annotations

import time

import torch

_BYTES = 512 << 20


def main() -> None:
    host = torch.empty(_BYTES, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(_BYTES, dtype=torch.uint8, device="cuda")
    took = []
    for _ in range(6):
        torch.cuda.synchronize()
        began = time.perf_counter()
        device.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    print(_BYTES / min(took) / 1e3)


if __name__ == "__main__":
    main()
