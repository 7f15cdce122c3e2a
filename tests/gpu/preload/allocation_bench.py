"""Measures cudaMalloc, cudaFree and their stream-ordered forms, as JSON lines."""

import json
import time

import cupy
from cupy.cuda import runtime

cupy.zeros(1)  # the context


def median(function, rounds):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return sorted(times)[rounds // 2]


def pair(size):
    runtime.free(runtime.malloc(size))


def ordered_pair(size):
    runtime.freeAsync(runtime.mallocAsync(size, 0), 0)


for size, text in ((1 << 10, "1 KiB"), (2 << 20, "2 MiB"), (64 << 20, "64 MiB"), (1 << 30, "1 GiB")):
    for name, function in (("cudaMalloc + cudaFree", pair),
                           ("cudaMallocAsync + cudaFreeAsync", ordered_pair)):
        function(size)
        print(json.dumps({"size": f"{name} {text}", "seconds": median(lambda: function(size), 60)}),
              flush=True)


def give_back_and_grow(count, size):
    blocks = [runtime.malloc(size) for _ in range(count)]

    def turn():
        for address in blocks:
            runtime.free(address)
        blocks[:] = [runtime.malloc(size) for _ in range(count)]

    turn()
    seconds = median(turn, 7)
    for address in blocks:
        runtime.free(address)
    return seconds


for count, size, text in ((16, 64 << 20, "1 GiB in blocks of 64 MiB"), (2, 512 << 20, "1 GiB in blocks of 512 MiB"),
                          (128, 2 << 20, "256 MiB in blocks of 2 MiB")):
    print(json.dumps({"size": f"give back + grow {text}", "seconds": give_back_and_grow(count, size)}), flush=True)
