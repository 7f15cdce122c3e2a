#!/usr/bin/env python3
"""Arrays of CuPy in memory that a broker leased.

    GMB_LIBRARY=build/lib/libgmb.so examples/cupy/example.py [SOCKET_DIR]
"""

import sys

import cupy
import gmb_cupy


def main(argv):
    heap = gmb_cupy.Heap(socket_dir=argv[0] if argv else None)
    heap.use()
    numbers = cupy.arange(1 << 20, dtype=cupy.float64)
    assert float((numbers * 2).sum()) == float(len(numbers)) * (len(numbers) - 1)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        more = cupy.ones((1024, 1024))
        product = more @ more
        assert float(product[0, 0]) == 1024
        del more, product
        heap.detach_stream(stream)
    try:
        cupy.empty(1 << 50, dtype=cupy.uint8)
    except MemoryError as error:
        print(f"refused, as it should be: {error}")
    stats = heap.statistics()
    print(f"allocated {stats.allocated_bytes} bytes in {stats.blocks} blocks, "
          f"leased {stats.leased_bytes} bytes in {stats.leases} leases")
    del numbers
    cupy.cuda.set_allocator(None)
    cupy.cuda.Device().synchronize()
    print(f"given back: {heap.trim()} bytes")
    heap.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
