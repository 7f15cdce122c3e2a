#!/usr/bin/env python3
"""Takes memory of the first GPU by the driver alone, as any program without a broker does.

    device_memory.py take BYTES     takes so many
    device_memory.py leave BYTES    takes all but so many

Says "holding", or why not and ends with 1. Then it answers each line of its input with the
bytes that are free on the device, until SIGTERM.
"""

import ctypes
import signal
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def check(code, what):
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        sys.exit(f"{what}: {(text.value or b'unknown').decode()}")


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    return free.value


def main():
    what, nbytes = sys.argv[1], int(sys.argv[2])
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    wanted = nbytes if what == "take" else free_bytes() - nbytes
    if wanted > 0:
        check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(wanted)), "cuMemAlloc")
    print("holding", flush=True)
    if what == "take":
        signal.pause()
    for _ in sys.stdin:
        print(free_bytes(), flush=True)


if __name__ == "__main__":
    main()
