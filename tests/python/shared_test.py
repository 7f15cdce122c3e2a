"""Shared leases: who fills them, who reads them, and what ends them."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest
from conftest import MIB, wait_until
from safetensors_test import raw_file, write

import gmb
from gmb import _client
from gmb._shared_files import Source, drop, fill_host, load

WORKER = pathlib.Path(__file__).with_name("shared_worker.py")


class Worker:
    """A process of shared_worker.py."""

    def __init__(self, broker, path, *flags, tenant="a", name="llm"):
        self._process = subprocess.Popen(
            [sys.executable, "-B", WORKER, broker.socket_dir, tenant, name, path, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.expect("ready")

    def tell(self, word):
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def hear(self):
        line = self._process.stdout.readline()
        assert line, f"it ended with {self._process.wait()}"
        return json.loads(line)

    def expect(self, step):
        heard = self.hear()
        assert heard["step"] == step, heard
        return heard

    def ask(self, word, step):
        self.tell(word)
        return self.expect(step)

    def loaded(self):
        """Its report once it has the lease, and whether it filled it."""
        heard = self.hear()
        filled = heard["step"] == "filling"
        if filled:
            heard = self.hear()
        assert heard["step"] == "loaded", heard
        assert heard["attached"] != filled
        return filled

    def sum(self):
        return self.ask("sum", "sum")["sum"]

    def end(self):
        self.ask("end", "ended")
        assert self._process.wait(30) == 0

    def kill(self):
        self._process.kill()
        self._process.wait()

    def ended_with(self):
        return self._process.wait(30)


@pytest.fixture
def workers(broker):
    made = []

    def start(path, *flags, **more):
        made.append(Worker(broker, path, *flags, **more))
        return made[-1]

    yield start
    for worker in made:
        worker.kill()


@pytest.fixture
def weights(tmp_path):
    """8 MiB and a bit, in a few tensors."""
    tensors = {
        f"layer.{i}": ("BF16", (1024, 1024), os.urandom(2 * MIB)) for i in range(4)
    }
    tensors["norm"] = ("F32", (3,), os.urandom(12))
    return write(tmp_path / "weights.safetensors", tensors)


@pytest.fixture
def expected(weights):
    """The sum of what a lease holds with the weights in it; there is no gap between them."""
    with Source(weights) as source:
        image = bytearray(source.nbytes)
        with memoryview(image) as view:
            source.read_into(view, 0)
    return hashlib.sha256(image).hexdigest()


def shared_leases(broker, tenant="a"):
    leases = broker.gmb("lease", "list", "--tenant", tenant)["leases"]
    return [lease for lease in leases if lease["share_name"]]


# --- Of several processes.


def test_of_many_that_start_at_once_one_fills(broker, workers, weights, expected):
    many = [workers(weights) for _ in range(6)]
    for worker in many:
        worker.tell("go")
    assert sum(worker.loaded() for worker in many) == 1
    assert {worker.sum() for worker in many} == {expected}
    (lease,) = shared_leases(broker)
    assert lease["attached"] == 6 and lease["sealed"]
    assert lease["share_name"].startswith("llm@")
    assert broker.pool()["granted_bytes"] == 10 * MIB
    for worker in many:
        worker.end()
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_when_the_filler_is_killed_another_one_fills(broker, workers, weights, expected):
    first = workers(weights, "pause")
    first.ask("go", "filling")
    others = [workers(weights) for _ in range(3)]
    for worker in others:
        worker.tell("go")
    wait_until(lambda: broker.gmb("status")["pools"][0]["granted_bytes"] == 10 * MIB)
    first.kill()
    assert sum(worker.loaded() for worker in others) == 1
    assert {worker.sum() for worker in others} == {expected}
    assert len(shared_leases(broker)) == 1


def test_the_writer_may_go_first(broker, workers, weights, expected):
    writer = workers(weights)
    writer.tell("go")
    assert writer.loaded()
    reader = workers(weights)
    reader.tell("go")
    assert not reader.loaded()
    writer.end()
    assert reader.sum() == expected
    late = workers(weights)
    late.tell("go")
    assert not late.loaded()
    assert late.sum() == expected
    reader.kill()
    assert late.sum() == expected
    late.end()
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_kept_it_outlives_all_until_it_is_dropped(broker, workers, weights, expected):
    writer = workers(weights, "keep")
    writer.tell("go")
    assert writer.loaded()
    writer.end()
    (lease,) = shared_leases(broker)
    assert lease["attached"] == 0 and lease["keep"]
    reader = workers(weights)
    reader.tell("go")
    assert not reader.loaded()
    dropped = broker.gmb("lease", "drop", "--tenant", "a", lease["share_name"])
    assert dropped["attached"] == 1
    assert reader.sum() == expected
    another = workers(weights)
    another.tell("go")
    assert another.loaded(), "the name is free"
    reader.end()
    another.end()
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_it_is_taken_when_all_are_parked_and_comes_back(broker, workers, weights, expected):
    many = [workers(weights) for _ in range(3)]
    for worker in many:
        worker.tell("go")
    assert sum(worker.loaded() for worker in many) == 1
    for worker in many:
        worker.ask("park", "parked")
    many[1].ask("enter", "entered")
    assert not broker.reclaim("a", 10 * MIB)
    assert broker.evicted_bytes("a") == 0
    many[1].ask("leave", "left")
    assert broker.reclaim("a", 10 * MIB)
    assert broker.evicted_bytes("a") == 10 * MIB
    assert [worker.sum() for worker in many] == [expected] * 3
    assert broker.evicted_bytes("a") == 0


def test_a_write_ends_who_writes_and_nobody_else(broker, workers, weights, expected):
    writer, reader, vandal = (workers(weights) for _ in range(3))
    for worker in (writer, reader, vandal):
        worker.tell("go")
        worker.loaded()
    vandal.tell("write")
    assert vandal.ended_with() == -signal.SIGSEGV
    assert reader.sum() == writer.sum() == expected


def test_a_use_without_the_gate_ends_who_uses_what_is_away(broker, workers, weights, expected):
    careless, careful = workers(weights), workers(weights)
    for worker in (careless, careful):
        worker.tell("go")
        worker.loaded()
        worker.ask("park", "parked")
    careless.ask("read outside", "read")  # it is there, by luck
    assert broker.reclaim("a", 10 * MIB)
    careless.tell("read outside")
    assert careless.ended_with() == -signal.SIGSEGV
    assert careful.sum() == expected


def test_another_file_of_that_name_is_another_lease(broker, workers, weights, tmp_path):
    other = write(tmp_path / "other", {"x": ("U8", (100,), os.urandom(100))})
    for path in (weights, other):
        worker = workers(path)
        worker.tell("go")
        assert worker.loaded()
    assert len({lease["share_name"] for lease in shared_leases(broker)}) == 2


def test_a_bad_file_fails_before_anything_is_leased(broker, workers, tmp_path):
    worker = workers(raw_file(tmp_path / "f", b"{nonsense}"))
    worker.tell("go")
    assert worker.expect("failed")["kind"] == "SafetensorsError"
    assert broker.pool()["granted_bytes"] == 0


# --- Of one.


@pytest.fixture
def other(broker):
    """Another session of the same tenant."""
    with gmb.connect(broker.socket_dir, tenant="a") as connected:
        yield connected


def test_what_is_attached_is_for_reading(client, other):
    lease = client.acquire(4 * MIB, share_as="llm")
    lease.fill(7)
    assert not lease.attached
    lease.seal()
    attached = other.attach("llm")
    assert attached.attached and attached.size_bytes == 4 * MIB
    assert attached.id and attached.device == lease.device
    assert attached.read(100, 3) == b"\7\7\7"
    for write_to in (lambda: attached.fill(1), lambda: attached.write(b"x"), attached.seal):
        with pytest.raises(gmb.FailedPreconditionError, match="attached"):
            write_to()
    with attached.view() as view:
        assert view.readonly and view[5] == 7
        with pytest.raises(TypeError):
            view[5] = 1
    attached.release()
    lease.release()


def test_names_are_taken_once(client, other):
    first = client.acquire(MIB, share_as="llm")
    with pytest.raises(gmb.NameTakenError) as caught:
        other.acquire(MIB, share_as="llm")
    assert isinstance(caught.value, FileExistsError)
    assert caught.value.reason == gmb.Reason.NAME_TAKEN
    first.release()
    other.acquire(MIB, share_as="llm").release()


@pytest.mark.parametrize("name", ["", "x" * 129, "new\nline", "llm\0x"])
def test_names_that_are_none_are_refused(client, name):
    for call in (
        lambda: client.acquire(MIB, share_as=name),
        lambda: client.attach(name),
        lambda: client.shared(name, MIB, lambda lease: None),
    ):
        with pytest.raises((ValueError, gmb.NotFoundError)):
            call()


def test_contents_that_may_be_lost_cannot_be_shared(client):
    with pytest.raises(gmb.InvalidArgumentError):
        client.acquire(MIB, share_as="llm", contents=gmb.Contents.DISCARD)


def test_a_name_that_nobody_has(broker, client):
    for call in (lambda: client.attach("llm", wait=5), lambda: client.drop("llm")):
        with pytest.raises(gmb.NotFoundError) as caught:
            call()
        assert caught.value.reason == gmb.Reason.NO_SUCH_LEASE


def test_another_tenants_name_is_nobodys(broker, client):
    with client.acquire(MIB, share_as="llm") as lease:
        lease.seal()
        with gmb.connect(broker.socket_dir, tenant="b") as stranger:
            with pytest.raises(gmb.NotFoundError):
                stranger.attach("llm")
            with pytest.raises(gmb.NotFoundError):
                stranger.drop("llm")
            stranger.acquire(MIB, share_as="llm").release()


def test_what_is_not_sealed_in_time_is_said(client, other):
    with client.acquire(MIB, share_as="llm"):
        with pytest.raises(gmb.FailedPreconditionError) as caught:
            other.attach("llm", wait=0.05)
        assert caught.value.reason == gmb.Reason.BAD_STATE


def test_who_waits_gets_it_when_it_is_sealed(client, other):
    lease = client.acquire(MIB, share_as="llm")
    got = []
    thread = threading.Thread(target=lambda: got.append(other.attach("llm", wait=30)))
    thread.start()
    lease.seal()
    thread.join()
    assert got.pop().attached
    lease.release()


def test_a_session_has_it_once(client, other):
    with client.acquire(MIB, share_as="llm") as lease:
        lease.seal()
        with pytest.raises(gmb.FailedPreconditionError):
            client.attach("llm")
        with other.attach("llm"):
            with pytest.raises(gmb.FailedPreconditionError):
                other.attach("llm")
        other.attach("llm").release()


def test_a_waiting_attach_can_be_withdrawn(client, other):
    with client.acquire(MIB, share_as="llm"):
        cancel = gmb.Canceller()
        cancel.cancel()
        with pytest.raises(gmb.CancelledError):
            other.attach("llm", wait=60, cancel=cancel)


def test_shared_fills_once(client, other):
    client.gate_on(park_after=0.001)
    depths = []

    def fill(lease):
        depths.append(client.depth)
        lease.fill(9)

    with client.shared("llm", MIB, fill) as mine, other.shared("llm", MIB, fill) as theirs:
        assert (mine.attached, theirs.attached) == (False, True)
        assert theirs.read(0, 1) == b"\t"
    assert depths == [1]


def test_shared_passes_on_who_has_access(client):
    def refusal(call):
        with pytest.raises(gmb.Error) as caught:
            call(access_from=["GPU-nobody"])
        return caught.value

    plain = refusal(lambda **more: client.acquire(MIB, **more))
    shared = refusal(lambda **more: client.shared("llm", MIB, lambda lease: None, **more))
    assert (shared.code, str(shared)) == (plain.code, str(plain))


def test_a_fill_that_fails_leaves_the_name_free(broker, client, other):
    def fail(lease):
        lease.fill(1)
        raise KeyError("as planned")

    with pytest.raises(KeyError, match="as planned"):
        client.shared("llm", MIB, fail)
    assert broker.pool()["granted_bytes"] == 0
    with other.shared("llm", MIB, lambda lease: lease.fill(2)) as lease:
        assert not lease.attached


def test_a_smaller_one_of_that_name_is_refused(client, other):
    with client.acquire(2 * MIB, share_as="llm") as lease:
        lease.seal()
        with pytest.raises(gmb.FailedPreconditionError, match="another one"):
            other.shared("llm", 4 * MIB, lambda lease: None)
        other.attach("llm").release()  # it was given back


def test_shared_gives_up_in_time(client, other):
    with client.acquire(MIB, share_as="llm"):
        with pytest.raises(gmb.FailedPreconditionError) as caught:
            other.shared("llm", MIB, lambda lease: None, wait=0.05)
        assert caught.value.reason == gmb.Reason.BAD_STATE


def test_an_interrupt_after_the_grant_loses_nothing(broker, client, other, monkeypatch):
    with client.acquire(MIB, share_as="llm") as lease:
        lease.seal()
        granted = broker.pool()["granted_bytes"]

        def interrupt(error):
            assert not error
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(_client, "check", interrupt)
            for call in (lambda: other.acquire(MIB), lambda: other.attach("llm")):
                with pytest.raises(KeyboardInterrupt):
                    call()
        assert broker.pool()["granted_bytes"] == granted
        other.attach("llm").release()  # it does not have it already


def test_what_is_just_being_given_back_is_waited_for(client, weights):
    uuid = client.devices[0].uuid

    def again(source, wait):
        return load(client, "llm", source, fill_host, device=uuid, wait=wait, keep=False)

    with Source(weights) as source:
        lease = again(source, 5)
        with pytest.raises(gmb.FailedPreconditionError, match="already"):
            again(source, 0.05)
        releasing = threading.Timer(0.05, lease.release)
        releasing.start()
        again(source, 60).release()
        releasing.join()


def test_what_is_kept_is_dropped_by_its_files(broker, client, weights):
    uuid = client.devices[0].uuid
    with Source(weights) as source:
        load(client, "llm", source, fill_host, device=uuid, wait=5, keep=True).release()
        assert broker.pool()["granted_bytes"]
        drop(client, "llm", source, device=uuid)
        assert broker.pool()["granted_bytes"] == 0
        with pytest.raises(gmb.NotFoundError):
            drop(client, "llm", source, device=uuid)


def test_a_file_that_is_rewritten_meanwhile_leaves_nothing_behind(broker, client, weights):
    uuid = client.devices[0].uuid
    os.utime(weights, ns=(0, 0))

    def fill(source, lease):
        fill_host(source, lease)
        with weights.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"x")

    with Source(weights) as source:
        with pytest.raises(gmb.SafetensorsError, match="changed while"):
            load(client, "llm", source, fill, device=uuid, wait=5, keep=False)
    assert broker.pool()["granted_bytes"] == 0


def test_a_truncated_file_leaves_nothing_behind(broker, client, weights):
    uuid = client.devices[0].uuid
    with Source(weights) as source:
        os.truncate(weights, 5 * MIB)
        with pytest.raises(gmb.SafetensorsError, match="truncated"):
            load(client, "llm", source, fill_host, device=uuid, wait=5, keep=False)
    assert broker.pool()["granted_bytes"] == 0
