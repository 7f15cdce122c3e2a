"""CuPy as it comes, idle between requests.

    gate_cupy.py [health GIB] DIR

health: GIB of arrays, and a thread that answers /health meanwhile.
"""

import sys

import cupy

import gate_health
import gate_requests

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


def answer_over_all():
    return answer(), [int(one.sum()) for one in more]


if sys.argv[1] == "health":
    # Beside a and b, which have 1 GiB.
    more = [cupy.full(1 << 30, number, dtype=cupy.uint8) for number in range(1, int(sys.argv[2]))]
    gate_health.serve(answer_over_all, f"{len(more) + 1} GiB of arrays")
else:
    gate_requests.serve(answer, f"{2 * a.nbytes >> 20} MiB of arrays")
