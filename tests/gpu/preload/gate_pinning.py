"""PyTorch whose second thread page-locks and unlocks a GiB of host memory all the while.

Says "ready" and answers a request whenever DIR/go-N appears; and at each locking how long it took.
"""

import threading
import time

import torch

import gate_requests

_EVERY_S = 0.4

cudart = torch.cuda.cudart()
weights = torch.arange(1 << 26, dtype=torch.float32, device="cuda")
buffer = torch.ones(1 << 30, dtype=torch.uint8)


def lock_pages():
    count = 0
    while True:
        began = time.monotonic()
        locked = int(cudart.cudaHostRegister(buffer.data_ptr(), buffer.numel(), 0))
        between = time.monotonic()
        unlocked = int(cudart.cudaHostUnregister(buffer.data_ptr()))
        count += 1
        print(f"locking {count}: {(between - began) * 1e3:.1f} ms, unlocking "
              f"{(time.monotonic() - between) * 1e3:.1f} ms, results {locked} and {unlocked}", flush=True)
        time.sleep(_EVERY_S)


def answer():
    return float(weights.sum(dtype=torch.float64))


threading.Thread(target=lock_pages, daemon=True).start()
gate_requests.serve(answer, "256 MiB of weights, and a thread that locks pages")
