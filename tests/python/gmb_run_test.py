"""gmb inside of a program that runs under `gmb run`, on the fake driver's GPU."""

import os
import sys

import pytest
from conftest import MIB, Broker, wait_until

# Memory that programs have from the CUDA runtime.
NATIVE = """
import ctypes, sys

driver = ctypes.CDLL("libcuda.so.1")

def call(name, *arguments):
    result = getattr(driver, name)(*arguments)
    assert result == 0, (name, result)

class Native:
    def __init__(self, nbytes):
        self.pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(nbytes))
    def free(self):
        call("cuMemFree_v2", self.pointer)

def put(address, text):
    call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), text, ctypes.c_size_t(len(text)))

def has(address, text):
    back = ctypes.create_string_buffer(len(text))
    call("cuMemcpyDtoH_v2", back, ctypes.c_uint64(address), ctypes.c_size_t(len(text)))
    return back.raw == text

def holds(address, text):
    put(address, text)
    return has(address, text)

context = ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxPushCurrent_v2", context)
"""

# And a session of gmb's own beside it.
BESIDE = NATIVE + """
if sys.argv[1] == "program first":
    native = Native(32 << 20)
import gmb
client = gmb.connect(tenant="a")
if sys.argv[1] == "gmb first":
    native = Native(32 << 20)
lease = client.acquire(8 << 20)
print("holds", holds(native.pointer.value, b"native"), holds(lease.address, b"leased"), flush=True)
sys.stdin.readline()
lease.release()
client.close()
native.free()
again = Native(2 << 20)
again.free()
print("done")
"""

# And torch's, inside scopes; without torch a stand-in for it.
TORCH = NATIVE + """
import time, types

torch = types.ModuleType("torch")
torch.__version__ = "2.11.0"
torch.OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {})
torch.UntypedStorage = type("UntypedStorage", (), {})
torch.cuda = types.SimpleNamespace(
    CUDAGraph=type("CUDAGraph", (), {"capture_begin": print, "capture_end": print}),
    empty_cache=lambda: None,
    memory=types.SimpleNamespace(CUDAPluggableAllocator=lambda *_: None),
)
sys.modules["torch"] = torch
if sys.argv[1] == "program first":
    native = Native(16 << 20)
import gmb.torch
from gmb import _segments
from gmb.torch import _session
from gmb.torch._pools import Router
_session._check_torch = lambda: None
_session._uuids = lambda client, devices: {0: client.devices[0].uuid}
Router.entered = Router.leaving = Router.unused_bytes = lambda router: {}

def turn(text):
    print(text, flush=True)
    sys.stdin.readline()

client = gmb.torch.enable(tenant="a")
if sys.argv[1] == "gmb first":
    native = Native(16 << 20)
client.enter()
segment = _segments.lib.gmb_torch_alloc(16 << 20, 0, None)
put(native.pointer.value, b"native")
put(segment, b"torch's")
client.set_trimmable(4 << 20)
turn("in")
deadline = time.monotonic() + 30
while not _segments.totals().trims:
    assert time.monotonic() < deadline, "never asked to trim"
client.gate_off()
client.leave()
turn("off")
client.gate_on()
turn("out")
client.enter()
print(has(segment, b"torch's"), has(native.pointer.value, b"native"))
client.leave()
turn("parks again")
print(has(native.pointer.value, b"native"), has(segment, b"torch's"))
gmb.torch.disable()
turn("disabled")
print(has(segment, b"torch's"))
_segments.free(segment)
turn("freed")
native.free()
"""


@pytest.fixture
def gpu_broker(tmp_path):
    driver = os.environ.get("FAKE_DRIVER_DIR")
    if driver is None:
        pytest.skip("this build has no gmb run: it is for x86-64 alone")
    started = Broker(tmp_path, "cuda:0", "--pool", "256MiB", LD_LIBRARY_PATH=driver)
    yield started
    started.stop()


@pytest.mark.parametrize("order", ["gmb first", "program first"])
def test_both_are_leased_and_given_back(gpu_broker, order):
    program = gpu_broker.start(
        "run", "--tenant", "a", "--verbose", "--", sys.executable, "-B", "-c", BESIDE, order
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


@pytest.mark.parametrize("order", ["gmb first", "program first"])
def test_torch_has_the_program_s_session_and_its_gate(gpu_broker, order):
    program = gpu_broker.start(
        "run", "--tenant", "a", "--park-after", "20ms", "--",
        sys.executable, "-B", "-c", TORCH, order,
    )

    def says(*lines):
        for line in lines:
            said = program.stdout.readline()
            assert said == f"{line}\n", program.communicate(timeout=60)[1]

    def session():
        found = gpu_broker.sessions("a")
        return found[0] if len(found) == 1 else {}

    def next_turn():
        program.stdin.write("\n")
        program.stdin.flush()

    try:
        says("in")
        wait_until(lambda: len(gpu_broker.sessions("a")) == 1)
        assert gpu_broker.resident_bytes("a") == 32 * MIB
        assert not gpu_broker.reclaim("a", 32 * MIB, "300ms"), "taken inside of a scope"
        assert session()["gate"] != "PARKED", "a program in a scope was taken for quiet"
        next_turn()  # which waits until it was asked to trim
        says("off")
        assert not gpu_broker.reclaim("a", 32 * MIB, "300ms"), "taken with the gate off"
        next_turn()
        says("out")
        for line in ("True True", "parks again"), ("True True", "disabled"):
            wait_until(lambda: session().get("gate") == "PARKED")
            assert gpu_broker.reclaim("a", 32 * MIB)
            assert session()["evicted_bytes"] == 32 * MIB
            next_turn()
            says(*line)
        # Without gmb.torch it is a program as any other.
        wait_until(lambda: session().get("gate") == "PARKED")
        assert gpu_broker.reclaim("a", 32 * MIB)
        next_turn()
        says("True", "freed")
        wait_until(lambda: gpu_broker.resident_bytes("a") == 16 * MIB)
        next_turn()
        assert program.wait(timeout=60) == 0, program.stderr.read()
        wait_until(lambda: gpu_broker.resident_bytes("a") == 0)
    finally:
        program.kill()


def test_torch_of_another_tenant_has_its_own_session(gpu_broker):
    program = gpu_broker.start(
        "run", "--tenant", "b", "--", sys.executable, "-B", "-c", TORCH, "program first"
    )
    try:
        assert program.stdout.readline() == "in\n", program.communicate(timeout=60)[1]
        assert gpu_broker.resident_bytes("a") == gpu_broker.resident_bytes("b") == 16 * MIB
        # The session with which `gmb run` asked for its terms ends by and by.
        wait_until(lambda: len(gpu_broker.sessions("a")) == len(gpu_broker.sessions("b")) == 1)
    finally:
        program.kill()


def test_a_tenant_may_be_named_anew(gpu_broker):
    code = "import gmb, sys; print(gmb.connect(tenant=sys.argv[1]).tenant)"
    for name in ("a", "b"):
        program = gpu_broker.start("run", "--tenant", "a", "--", sys.executable, "-B", "-c", code, name)
        out, err = program.communicate(timeout=60)
        assert out == f"{name}\n", err
