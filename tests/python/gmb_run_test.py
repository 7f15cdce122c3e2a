"""gmb inside of a program that runs under `gmb run`: two clients in one process.

The programs run on the fake driver's GPU. With the package of a wheel, the two have a
gRPC each (tools/check-wheel).
"""

import os
import sys

import pytest
from conftest import MIB, Broker, wait_until

# Memory that programs have from the CUDA runtime, and gmb.torch's own.
PROGRAM = """
import ctypes, sys

driver = ctypes.CDLL("libcuda.so.1")

def call(name, *arguments):
    result = getattr(driver, name)(*arguments)
    assert result == 0, (name, result)

def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value

class Native:
    def __init__(self, nbytes):
        self.pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(nbytes))
    def free(self):
        call("cuMemFree_v2", self.pointer)

def holds(address, text):
    call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), text, ctypes.c_size_t(len(text)))
    back = ctypes.create_string_buffer(len(text))
    call("cuMemcpyDtoH_v2", back, ctypes.c_uint64(address), ctypes.c_size_t(len(text)))
    return back.raw == text

context = ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxPushCurrent_v2", context)
if sys.argv[1] == "program first":
    native = Native(32 << 20)
import gmb
from gmb import _native, _segments
client = gmb.connect(tenant="a")
if sys.argv[1] == "gmb first":
    native = Native(32 << 20)
lease = client.acquire(8 << 20)
# torch's calls work on handles that the other library made.
assert address(_segments.lib.gmb_lease_data) == address(_native.lib.gmb_lease_data)
print("holds", holds(native.pointer.value, b"native"), holds(lease.address, b"leased"), flush=True)
sys.stdin.readline()
lease.release()
client.close()
native.free()
again = Native(2 << 20)
again.free()
print("done")
"""


@pytest.fixture
def gpu_broker(tmp_path):
    driver = os.environ.get("FAKE_DRIVER_DIR")
    if driver is None:
        pytest.skip("this build has no CUDA devices: it found no cuda.h")
    started = Broker(tmp_path, "cuda:0", "--pool", "256MiB", LD_LIBRARY_PATH=driver)
    yield started
    started.stop()


@pytest.mark.parametrize("order", ["gmb first", "program first"])
def test_both_are_leased_and_given_back(gpu_broker, order):
    program = gpu_broker.start(
        "run", "--tenant", "a", "--verbose", "--", sys.executable, "-B", "-c", PROGRAM, order
    )
    try:
        said = program.stdout.readline()
        assert said == "holds True True\n", program.communicate(timeout=60)[1]
        assert gpu_broker.resident_bytes("a") == 40 * MIB
        # The one with which `gmb run` looked for the broker has ended, or does.
        wait_until(lambda: len(gpu_broker.sessions("a")) == 2)
        out, err = program.communicate("go\n", timeout=60)
        assert (program.returncode, out) == (0, "done\n"), err
        wait_until(lambda: gpu_broker.resident_bytes("a") == 0)
    finally:
        program.kill()


def test_a_tenant_may_be_named_anew(gpu_broker):
    code = "import gmb, sys; print(gmb.connect(tenant=sys.argv[1]).tenant)"
    for name in ("a", "b"):
        program = gpu_broker.start("run", "--tenant", "a", "--", sys.executable, "-B", "-c", code, name)
        out, err = program.communicate(timeout=60)
        assert out == f"{name}\n", err
