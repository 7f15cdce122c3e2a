"""CuPy as it comes: its pool, its stream-ordered pool, kernels, out of memory."""

import sys

import cupy
import numpy

from checks import GIB, MIB, attempt, await_leased, check, finish, leased, mib, note

LIMIT = int(sys.argv[1])


def arrays():
    x = numpy.random.default_rng(5).standard_normal((1500, 1500))
    on_gpu = cupy.asarray(x)
    difference = float(abs(cupy.asnumpy(on_gpu @ on_gpu) - x @ x).max())
    check("a matrix product is right", difference < 1e-6, f"difference {difference:.1e}")
    check("it is in leased memory", leased() >= x.nbytes, mib(leased()))


def kernel():
    add = cupy.RawKernel(r"""
        extern "C" __global__ void add(const float* a, float* b, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) b[i] += a[i];
        }""", "add")
    n = 1 << 22
    a, b = cupy.arange(n, dtype=cupy.float32), cupy.ones(n, dtype=cupy.float32)
    add((n // 256,), (256,), (a, b, n))
    check("a kernel compiled at run time", bool((b == a + 1).all()))


def pool():
    many = [cupy.full(size * 1000, size, dtype=cupy.int32) for size in range(1, 400)]
    check("399 arrays of 4 KB to 1.6 MB hold what was written",
          all(bool((x == size).all()) for size, x in enumerate(many, 1)))
    before = leased()
    del many
    cupy.get_default_memory_pool().free_all_blocks()
    after = await_leased(lambda now: now < before // 4)
    check("free_all_blocks gives them back", after < before // 4, f"{mib(before)} to {mib(after)}")


def budget():
    free, total = cupy.cuda.Device().mem_info
    check("mem_info says the tenant's budget", total == LIMIT and 0 < free <= total,
          f"free {mib(free)} of {mib(total)}")


def ordered():
    with cupy.cuda.using_allocator(cupy.cuda.MemoryAsyncPool().malloc):
        right = True
        for i in range(200):
            x = cupy.full(2 * MIB, i, dtype=cupy.int32)
            right = right and int(x[-1]) == i
        check("MemoryAsyncPool: 200 arrays", right, mib(leased()))
        del x


def out_of_memory():
    try:
        cupy.empty(LIMIT + GIB, dtype=cupy.uint8)
        check("more than the limit is refused", False)
    except cupy.cuda.memory.OutOfMemoryError:
        check("more than the limit is OutOfMemoryError", True)
    x = cupy.ones(GIB, dtype=cupy.uint8)
    check("and the program goes on", int(x.sum(dtype=cupy.int64)) == GIB)


note(f"cupy {cupy.__version__}")
for step in (arrays, kernel, budget, pool, ordered, out_of_memory):
    attempt(step.__name__, step)
finish()
