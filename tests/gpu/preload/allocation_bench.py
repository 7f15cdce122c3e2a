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
