"""CuPy as it comes, idle between requests."""

import cupy

from gate_requests import serve

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


serve(answer, f"{2 * a.nbytes >> 20} MiB of arrays")
