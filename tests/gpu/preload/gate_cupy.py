"""CuPy as it comes, idle between requests, as gate_torch.py."""

import os
import sys
import time

import cupy

DIR = sys.argv[1]
double = cupy.RawKernel(r"""
    extern "C" __global__ void scale(const float* a, float* b, long n) {
      long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) b[i] = 2 * a[i];
    }""", "scale")
n = 1 << 27
a = cupy.arange(n, dtype=cupy.float32)
b = cupy.zeros(n, dtype=cupy.float32)


def answer():
    b[:] = 0
    double((n // 256,), (256,), (a, b, n))
    return float(b[12345]), float(b.sum(dtype=cupy.float64))


before = answer()
print(f"ready {2 * a.nbytes >> 20} MiB of arrays", flush=True)
turn = 0
while True:
    turn += 1
    while not os.path.exists(f"{DIR}/go-{turn}"):
        if os.path.exists(f"{DIR}/end"):
            print("end", flush=True)
            sys.exit(0)
        time.sleep(0.01)
    began = time.monotonic()
    now = answer()
    took = time.monotonic() - began
    began = time.monotonic()
    answer()
    resident = time.monotonic() - began
    print(f"turn {turn}: first answer {took * 1e3:.1f} ms, resident {resident * 1e3:.1f} ms, "
          f"equal {now == before}", flush=True)
