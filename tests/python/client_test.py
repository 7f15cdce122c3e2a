"""Sessions, leases, errors, forks and a broker that goes away."""

import copy
import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest
from conftest import MIB, wait_until

import gmb
from gmb import _native


def test_a_library_that_is_older_is_told():
    library = ctypes.CDLL(None)
    _native.declare(library, "libold.so", {"getpid": (ctypes.c_int32, [])})
    with pytest.raises(ImportError, match=r"libold.so is older .* no gmb_of_tomorrow"):
        _native.declare(library, "libold.so", {"gmb_of_tomorrow": (None, [])})


def test_a_session_says_who_it_is(client):
    assert client.tenant == "a"
    assert client.session_id > 0
    (device,) = client.devices
    assert device.kind == gmb.DeviceKind.HOST
    assert device.granularity_bytes == 2 * MIB
    assert client.warnings == ()
    client.check()


def test_quotas_follow_leases(client):
    lease = client.acquire(3 * MIB)
    (quota,) = client.quotas()
    assert quota.device == lease.device.uuid
    assert quota.leased_bytes == 4 * MIB
    assert quota.limit_bytes == quota.pool_bytes == 64 * MIB
    lease.release()
    assert client.quotas()[0].leased_bytes == 0


@pytest.mark.parametrize(
    ("size", "nbytes"),
    [("3MiB", 4 * MIB), (" 2097152 ", 2 * MIB), ("1.5 gib", None), ("2097.152kb", 2 * MIB)],
)
def test_a_size_may_be_text(client, size, nbytes):
    if nbytes is None:  # more than the pool has
        with pytest.raises(gmb.Error, match=f"bytes={3 << 29}"):
            client.acquire(size)
        return
    with client.acquire(size) as lease:
        assert lease.size_bytes == nbytes


@pytest.mark.parametrize(
    ("size", "error"),
    [(1.5, TypeError), (None, TypeError), ("1.5", ValueError), ("-1GiB", ValueError),
     ("much", ValueError), ("1GiBB", ValueError), ("", ValueError), ("50%", ValueError)],
)
def test_what_is_no_size_is_refused_in_words(client, size, error):
    with pytest.raises(error, match="write whole bytes, or text such as") as caught:
        client.acquire(size)
    assert repr(size) in str(caught.value)


def test_an_unknown_tenant_is_named_and_nothing_to_wait_for(broker):
    # A program that tries again as long as it is UnavailableError must not do
    # so for ever.
    with pytest.raises(gmb.NotFoundError, match="the broker has no tenant bacth"):
        gmb.connect(broker.socket_dir, tenant="bacth")
    broker.stop()
    with pytest.raises(gmb.UnavailableError):
        gmb.connect(broker.socket_dir, tenant="bacth")


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_is_given_back_once_has_no_twin(client, twin):
    # The twin of a released lease read at an address that was no longer there.
    with client.acquire(2 * MIB) as lease:
        with pytest.raises(TypeError, match="a Lease can be neither .* attaches by name"):
            twin(lease)
        with pytest.raises(TypeError, match=r"a Client can be neither .* calls connect\(\)"):
            twin(client)
        with pytest.raises(TypeError, match="a Canceller can be neither .* a new one"):
            twin(gmb.Canceller())
        gc.collect()
        assert not client.closed
        assert lease.read(0, 1) == b"\0"


def test_a_lease_holds_bytes(client):
    with client.acquire(4 * MIB, contents=gmb.Contents.RESIDENT) as lease:
        assert len(lease) == lease.size_bytes == 4 * MIB
        lease.fill(7, offset=10, count=5)
        lease.write(b"abc", offset=1)
        assert lease.read(0, 16) == b"\0abc" + bytes(6) + b"\7" * 5 + b"\0"
        lease.write(memoryview(bytearray(b"xyz"))[::2], offset=4 * MIB - 2)
        assert lease.read(4 * MIB - 2) == b"xz"
    assert lease.released
    with pytest.raises(ValueError, match="released"):
        lease.read()
    lease.release()  # twice is allowed


def test_a_view_is_the_memory_itself(client):
    lease = client.acquire(2 * MIB)
    view = lease.view()
    assert len(view) == 2 * MIB
    view[100:103] = b"abc"
    assert lease.read(100, 3) == b"abc"
    again = lease.view()
    lease.write(b"z", offset=101)
    assert bytes(again[100:103]) == b"azc"
    with pytest.raises(BufferError, match="view"):
        lease.release()
    view.release()
    again.release()
    lease.release()


def test_a_view_keeps_its_lease(broker, client):
    view = client.acquire(2 * MIB).view()
    view[0] = 5
    assert broker.pool()["granted_bytes"] == 2 * MIB
    assert view[0] == 5
    del view
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_host_memory_is_no_cuda_array(client):
    with client.acquire(1) as lease:
        assert not hasattr(lease, "__cuda_array_interface__")


def test_a_lease_that_is_forgotten_goes_back(broker, client):
    client.acquire(2 * MIB)
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_a_lease_outlives_its_client(broker):
    with gmb.connect(broker.socket_dir, tenant="a") as client:
        lease = client.acquire(1)
    lease.write(b"still")
    assert lease.read(0, 5) == b"still"
    lease.release()


def test_ranges_outside_are_refused(client):
    with client.acquire(1) as lease:
        with pytest.raises(gmb.InvalidArgumentError):
            lease.read(2 * MIB, 1)
        with pytest.raises(ValueError):
            lease.read(-1, 1)
        with pytest.raises(ValueError):
            lease.fill(256)
        # Not cut to 64 bits, which would be the beginning.
        for call in (lambda at: lease.read(at, 1), lambda at: lease.write(b"x", at),
                     lambda at: lease.fill(1, at, 1)):
            with pytest.raises(gmb.InvalidArgumentError):
                call(1 << 64)
        for count in (3 * MIB, 1 << 45, 1 << 64):  # nor made room for
            with pytest.raises(gmb.InvalidArgumentError):
                lease.read(0, count)
        with pytest.raises(gmb.InvalidArgumentError):
            lease.read(3 * MIB)
        assert lease.read(0, 1) == b"\0"


def test_refusals_carry_their_reason(broker):
    with gmb.connect(broker.socket_dir, tenant="small") as client:
        with pytest.raises(gmb.OutOfMemoryError) as caught:
            client.acquire(16 * MIB)
        error = caught.value
        assert error.code == gmb.Code.RESOURCE_EXHAUSTED
        assert error.reason == gmb.Reason.TENANT_LIMIT
        assert error.deficit_bytes == 8 * MIB
        assert isinstance(error, MemoryError)
        with pytest.raises(gmb.InvalidArgumentError) as caught:
            client.acquire(0)
        assert caught.value.reason == gmb.Reason.BAD_REQUEST
        assert caught.value.field
        with pytest.raises(gmb.NotFoundError) as caught:
            client.acquire(1, device="GPU-nobody")
        assert caught.value.reason == gmb.Reason.NO_SUCH_DEVICE


def test_a_request_waits_its_turn_and_can_be_withdrawn(broker, client):
    with gmb.connect(broker.socket_dir, tenant="b") as other:
        held = other.acquire(48 * MIB, contents=gmb.Contents.RESIDENT)
        asked, answers, cancel = threading.Event(), [], gmb.Canceller()

        def ask():
            try:
                answers.append(
                    client.acquire(
                        40 * MIB, wait=60, on_waiting=lambda _: asked.set(), cancel=cancel
                    )
                )
            except gmb.Error as error:
                answers.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        assert asked.wait(30)
        cancel.cancel()
        thread.join()
        assert isinstance(answers.pop(), gmb.CancelledError)

        asked.clear()
        cancel = gmb.Canceller()
        thread = threading.Thread(target=ask)
        thread.start()
        assert asked.wait(30)
        held.release()
        thread.join()
        answers.pop().release()


def test_a_trim_hook_is_asked_for_what_it_said(broker):
    cache, seen = [], []

    def trim(device, nbytes, seconds):
        seen.append((device, nbytes, seconds))
        while cache:
            cache.pop().release()

    with gmb.connect(broker.socket_dir, tenant="a", on_trim=trim) as client:
        cache.append(client.acquire(48 * MIB))
        client.set_trimmable(48 * MIB)
        with gmb.connect(broker.socket_dir, tenant="b") as other:
            other.acquire(16 * MIB, wait=30).release()
            other.acquire(32 * MIB, wait=30).release()
        assert seen and seen[0][0] == client.devices[0].uuid
        assert seen[0][1] > 0 and seen[0][2] >= 0  # 0: called late
        assert not cache


def test_a_changed_budget_is_heard(broker):
    heard = []
    with gmb.connect(broker.socket_dir, tenant="a", on_budget_changed=heard.append):
        broker.gmb("tenant", "set", "a", "--limit", "32MiB")
        wait_until(lambda: any(quota.limit_bytes == 32 * MIB for quota in heard))


def test_a_client_can_be_closed_inside_its_callback(broker):
    done = threading.Event()
    held = []

    def close(_):
        held.pop().close()
        done.set()

    held.append(gmb.connect(broker.socket_dir, tenant="a", on_budget_changed=close))
    broker.gmb("tenant", "set", "a", "--limit", "32MiB")
    assert done.wait(30)


def test_a_client_is_not_closed_in_the_middle_of_its_own_call(broker):
    said = []

    def close(_):
        with pytest.raises(gmb.FailedPreconditionError, match="in the middle of a call") as caught:
            client.close()
        said.append(caught.value)
        cancel.cancel()

    with gmb.connect(broker.socket_dir, tenant="b") as other, other.acquire(40 * MIB):
        with gmb.connect(broker.socket_dir, tenant="a") as client:
            cancel = gmb.Canceller()
            with pytest.raises(gmb.CancelledError):
                client.acquire(40 * MIB, wait=60, on_waiting=close, cancel=cancel)
            assert said
            client.check()


def test_a_closed_client_says_so(client):
    client.close()
    client.close()
    for call in (client.quotas, client.check, lambda: client.acquire(1), client.gate_on):
        with pytest.raises(gmb.UnavailableError, match="closed"):
            call()


def test_nobody_listens(tmp_path):
    with pytest.raises(gmb.UnavailableError) as caught:
        gmb.connect(tmp_path / "nothing")
    assert isinstance(caught.value, ConnectionError)


def test_importing_needs_no_broker(tmp_path):
    said = subprocess.run(
        [sys.executable, "-c", "import gmb; print('imported'); gmb.connect()"],
        env={**os.environ, "GMB_SOCKET_DIR": str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout == "imported\n"
    assert "UnavailableError" in said.stderr.splitlines()[-1]
    assert str(tmp_path / "nothing") in said.stderr.splitlines()[-1]


def test_leases_of_nothing_and_of_more_than_there_is(client):
    for nbytes in (0, 1 << 60, (1 << 64) + 1):
        with pytest.raises(gmb.InvalidArgumentError, match="at least 1 byte"):
            client.acquire(nbytes)
    with pytest.raises(gmb.OutOfMemoryError):
        client.acquire(1 << 40)
    client.acquire(2 * MIB).release()
    with pytest.raises(ValueError, match="below 0"):
        client.set_trimmable(-1)


ENDS = """
import sys, threading, gmb
client = gmb.connect(sys.argv[1], tenant="a")
waits = threading.Event()
def ask(): client.acquire(40 << 20, wait=600, on_waiting=lambda _: waits.set())
threading.Thread(target=ask, daemon=True).start()
assert waits.wait(30)
"""


def test_a_process_ends_while_a_daemon_thread_waits_for_memory(broker):
    with gmb.connect(broker.socket_dir, tenant="b") as other:
        held = other.acquire(48 * MIB, contents=gmb.Contents.RESIDENT)
        done = subprocess.run(
            [sys.executable, "-c", ENDS, broker.socket_dir],
            capture_output=True, timeout=60, check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        held.release()


SILENT = """
import atexit, subprocess, sys, threading
heard = []
def last():  # after gmb's own end: who is called now may find no interpreter
    before = len(heard)
    for turn in range(8):
        subprocess.run(
            [sys.argv[2], "--socket-dir", sys.argv[1], "tenant", "set", "a",
             "--limit", f"{50 + 2 * (turn % 2)}MiB"],
            check=True, stdout=subprocess.DEVNULL)
        client.quotas()
    print(before > 0, len(heard) - before)
atexit.register(last)
import gmb
changed = threading.Event()
def told(quota):
    heard.append(quota)
    changed.set()
client = gmb.connect(sys.argv[1], tenant="a", on_budget_changed=told)
waits = threading.Event()
def ask(): client.acquire(40 << 20, wait=600, on_waiting=lambda _: waits.set())
threading.Thread(target=ask, daemon=True).start()
assert waits.wait(30)
subprocess.run([sys.argv[2], "--socket-dir", sys.argv[1], "tenant", "set", "a",
                "--limit", "50MiB"], check=True, stdout=subprocess.DEVNULL)
assert changed.wait(30)
"""


def test_nothing_is_called_when_the_interpreter_ends(broker):
    with gmb.connect(broker.socket_dir, tenant="b") as other:
        held = other.acquire(48 * MIB, contents=gmb.Contents.RESIDENT)
        done = subprocess.run(
            [sys.executable, "-c", SILENT, broker.socket_dir, os.environ["GMB_PROGRAM"]],
            capture_output=True, text=True, timeout=60, check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "True 0\n", "")
        held.release()


STUCK = """
import sys, subprocess, threading, gmb
called = threading.Event()
def wait():
    threading.Event().wait()
def work():  # asks for the interpreter all the time, also when it has ended
    n = 0
    while True:
        n += 1
def told(*_):
    called.set()
    globals()[sys.argv[3]]()
client = gmb.connect(sys.argv[1], tenant="a", on_budget_changed=told)
other = gmb.connect(sys.argv[1], tenant="a")
lease = client.acquire(2 << 20)
subprocess.run([sys.argv[2], "--socket-dir", sys.argv[1], "tenant", "set", "a",
                "--limit", "50MiB"], check=True, stdout=subprocess.DEVNULL)
assert called.wait(30)
"""


@pytest.mark.parametrize("how", ["wait", "work"])
def test_a_process_ends_while_a_callback_does_not(broker, how):
    done = subprocess.run(
        [sys.executable, "-c", STUCK, broker.socket_dir, os.environ["GMB_PROGRAM"], how],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: not broker.sessions("a"))


STUCK_INSIDE_A_CALL = """
import sys, threading, gmb
called = threading.Event()
def told(ahead):
    called.set()
    n = 0
    while True:
        n += 1
client = gmb.connect(sys.argv[1], tenant="a")
def ask(): client.acquire(40 << 20, wait=600, on_waiting=told)
threading.Thread(target=ask, daemon=True).start()
assert called.wait(30)
"""


def test_a_process_ends_while_a_callback_inside_a_call_does_not(broker):
    with gmb.connect(broker.socket_dir, tenant="b") as other:
        held = other.acquire(48 * MIB, contents=gmb.Contents.RESIDENT)
        done = subprocess.run(
            [sys.executable, "-c", STUCK_INSIDE_A_CALL, broker.socket_dir],
            capture_output=True, text=True, timeout=60, check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        held.release()


# While the broker is stopped, and goes on for nobody but the end of the process.
DROPS = """
import os, signal, sys, gmb
client = gmb.connect(sys.argv[1], tenant="a", answer_timeout=600)
lease = client.acquire(2 << 20)
os.kill(int(sys.argv[2]), signal.SIGSTOP)
del lease
os.kill(int(sys.argv[2]), signal.SIGCONT)
print(client.quotas()[0].leased_bytes)
"""


def test_a_lease_that_is_dropped_waits_for_no_answer(broker):
    try:
        done = subprocess.run(
            [sys.executable, "-c", DROPS, broker.socket_dir, str(broker.pid)],
            capture_output=True, text=True, timeout=30, check=False,
        )
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


USE = """
import ctypes, sys, gmb
client = gmb.connect(sys.argv[1], tenant="a")
lease = client.acquire(2 << 20)
client.gate_on(park_after=0.01)
with gmb.active(): lease.write(b"here")
print(lease.address, flush=True)
sys.stdin.readline()
if sys.argv[2] == "in": gmb.active().__enter__()
print(ctypes.string_at(lease.address, 4), flush=True)
"""


@pytest.mark.parametrize("where", ["in", "out"])
def test_what_is_away_faults_outside_of_the_gate_alone(broker, where):
    user = subprocess.Popen(
        [sys.executable, "-c", USE, broker.socket_dir, where],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert int(user.stdout.readline())
    assert broker.reclaim("a", 2 * MIB)
    said = user.communicate("use it\n")[0]
    if where == "in":
        assert (user.returncode, said) == (0, "b'here'\n")
    else:
        assert (user.returncode, said) == (-signal.SIGSEGV, "")


def test_names_of_tenants_are_checked():
    for name in ("", "..", "a/b"):
        with pytest.raises(ValueError, match="tenant"):
            gmb.connect("/nowhere", tenant=name)


def test_an_empty_token_is_not_taken_for_none(broker):
    for token in ("", b""):
        with pytest.raises(ValueError, match="token"):
            gmb.connect(broker.socket_dir, tenant="a", tenant_token=token)


def test_a_broker_that_dies_leaves_the_memory(broker, client):
    lease = client.acquire(2 * MIB)
    lease.write(b"here")
    broker.kill()

    def is_over():
        try:
            client.check()
        except gmb.UnavailableError:
            return True
        return False

    wait_until(is_over)
    assert bytes(lease.view()[:4]) == b"here"
    with pytest.raises(gmb.UnavailableError):
        client.acquire(1)
    lease.release()


def in_child(work):
    """The result of work() in a forked child, as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_a_forked_child_has_no_session(broker, client):
    lease = client.acquire(1)
    lease.write(b"mine")

    def use():
        said = []
        for call in (
            client.check,
            client.quotas,
            client.enter,
            lambda: client.acquire(1),
            lambda: lease.read(0, 1),
            lambda: gmb.connect(broker.socket_dir, tenant="a"),
        ):
            try:
                call()
                said.append("nothing")
            except gmb.ForkedError as error:
                said.append("forked" if "fork" in str(error) else str(error))
        client.close()
        return said

    assert in_child(use) == str(["forked"] * 6)
    assert lease.read(0, 4) == b"mine"
    assert in_child(lambda: sum(range(10))) == "45"
    with client._session._lock:  # as another thread may have it when a worker is forked
        assert in_child(use) == str(["forked"] * 6)
    lease.release()


def test_a_child_forked_within_a_scope_ends_well(client):
    client.gate_on()
    with gmb.active():
        assert in_child(lambda: (client.depth, client.leave())) == "(0, None)"
        assert client.depth == 1
    client.check()
