"""libgmb_torch.so without torch: the functions that torch calls, on host memory."""

import ctypes
import threading

import pytest
from conftest import MIB, wait_until

import gmb
from gmb import _segments


@pytest.fixture
def segments(broker):
    trims = []

    def on_trim(device, nbytes, seconds):
        trims.append((device, nbytes))

    client = gmb.Client(
        broker.socket_dir, tenant="a", _on_trim_address=_segments.ON_TRIM_ADDRESS
    )
    _segments.open_session(client, {0: client.devices[0].uuid, 2: "GPU-other"}, wait=0.2)
    _segments.set_trim(on_trim)
    client.trims = trims
    yield client
    _segments.set_trim(None)
    _segments.close_session()
    client.close()


def allocate(nbytes, device=0):
    return _segments.lib.gmb_torch_alloc(nbytes, device, None)


def free(address):
    _segments.lib.gmb_torch_free(address, 0, 0, None)


def test_a_segment_is_a_lease(broker, segments):
    address = allocate(2 * MIB)
    ctypes.memset(address, 1, 2 * MIB)
    found = _segments.find(address + MIB)
    assert (found.address, found.bytes, found.device) == (address, 2 * MIB, 0)
    assert _segments.find(address + 2 * MIB) is None
    assert broker.pool()["granted_bytes"] == 2 * MIB
    before = _segments.totals()
    free(address)
    assert broker.pool()["granted_bytes"] == 0
    assert _segments.find(address) is None
    after = _segments.totals()
    assert (after.segments, after.bytes) == (before.segments - 1, before.bytes - 2 * MIB)
    assert after.changes > before.changes


def test_what_is_not_ours_is_not_freed(segments):
    free(1 << 40)


def test_a_refusal_is_told_to_the_thread_that_asked(segments):
    assert allocate(100 * MIB) is None
    others = []
    thread = threading.Thread(target=lambda: others.append(_segments.take_failure()))
    thread.start()
    thread.join()
    assert others == [None]
    failure = _segments.take_failure()
    assert failure.requested_bytes == 100 * MIB
    assert failure.reason == gmb.Reason.TENANT_LIMIT
    assert failure.deficit_bytes == 36 * MIB
    assert failure.message
    assert _segments.take_failure() is None


def test_sizes_from_nothing_to_more_than_there_is(broker, segments):
    assert allocate(1 << 60) is None
    assert _segments.take_failure().requested_bytes == 1 << 60
    assert allocate(0) is None
    assert broker.pool()["granted_bytes"] == 0
    address = allocate(2 * MIB)
    assert address is not None
    free(address)


def test_a_broker_that_dies_leaves_segments_and_makes_no_more(broker, segments):
    address = allocate(2 * MIB)
    ctypes.memset(address, 7, 2 * MIB)
    broker.kill()
    wait_until(lambda: is_over(segments))
    assert ctypes.string_at(address, 2 * MIB) == b"\7" * 2 * MIB
    assert allocate(2 * MIB) is None
    assert _segments.take_failure().code == gmb.Code.UNAVAILABLE
    free(address)
    assert _segments.find(address) is None


def is_over(client):
    try:
        client.check()
    except gmb.UnavailableError:
        return True
    return False


@pytest.mark.parametrize("device", [-1, 1, 2, 3])
def test_a_device_that_the_broker_lacks_is_refused(segments, device):
    assert allocate(MIB, device) is None
    assert _segments.take_failure().code == gmb.Code.NOT_FOUND


def test_a_group_is_sealed_together(segments):
    plain = allocate(2 * MIB)
    with _segments.group(7, gmb.Contents.PRESERVE):
        weights = [allocate(2 * MIB), allocate(4 * MIB)]
    _segments.seal(7)
    assert [_segments.find(address).sealed for address in weights] == [1, 1]
    assert _segments.find(plain).sealed == 0
    assert _segments.find(plain).group == 0
    for address in [plain, *weights]:
        free(address)


def test_a_group_that_cannot_be_sealed_says_why(segments):
    with _segments.group(8, gmb.Contents.DISCARD):
        address = allocate(2 * MIB)
    with pytest.raises(gmb.Error):
        _segments.seal(8)
    free(address)


def test_nothing_is_released_during_a_capture(broker, segments):
    address = allocate(2 * MIB)
    with _segments.capture():
        with _segments.capture():
            free(address)
        assert broker.pool()["granted_bytes"] == 2 * MIB
    assert broker.pool()["granted_bytes"] == 0


def test_trims_are_passed_on(broker, segments):
    address = allocate(48 * MIB)
    segments.set_trimmable(48 * MIB)

    def free_when_asked():
        wait_until(lambda: segments.trims)
        free(address)

    thread = threading.Thread(target=free_when_asked)
    thread.start()
    with gmb.connect(broker.socket_dir, tenant="b") as other:
        other.acquire(32 * MIB, wait=30).release()
    thread.join()
    assert segments.trims[0][0] == segments.devices[0].uuid


def test_no_trim_during_a_capture(broker, segments):
    address = allocate(48 * MIB)
    segments.set_trimmable(48 * MIB)
    before = _segments.totals().trims
    with _segments.capture(), gmb.connect(broker.socket_dir, tenant="b") as other:
        with pytest.raises(gmb.OutOfMemoryError):
            other.acquire(32 * MIB, wait=0.3)
        assert not segments.trims
        # It was asked, and has to be told anew: gmb.torch sees that here.
        wait_until(lambda: _segments.totals().trims > before)
    free(address)


def test_no_trim_while_a_lease_is_waited_for(broker, segments):
    address = allocate(24 * MIB)
    segments.set_trimmable(24 * MIB)
    _segments.open_session(segments, {0: segments.devices[0].uuid}, wait=60)
    with gmb.connect(broker.socket_dir, tenant="b") as other:
        held = other.acquire(32 * MIB)
        got = []
        thread = threading.Thread(target=lambda: got.append(allocate(16 * MIB)))
        thread.start()
        wait_until(lambda: broker.pool()["waiting"] == 1)
        assert _segments.totals().waiting == 1
        asked = len(segments.trims)
        with pytest.raises(gmb.OutOfMemoryError):
            other.acquire(16 * MIB, wait=0.3)
        assert len(segments.trims) == asked
        held.release()
        thread.join()
    assert got[0] is not None
    free(got[0])
    free(address)


def test_after_closing_nothing_is_made_and_all_can_be_freed(broker):
    client = gmb.Client(broker.socket_dir, tenant="a")
    _segments.open_session(client, {0: client.devices[0].uuid}, wait=0)
    address = allocate(2 * MIB)
    _segments.close_session()
    client.close()
    assert allocate(MIB) is None
    assert "gmb.torch.enable()" in _segments.take_failure().message
    free(address)
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_a_shared_lease_can_be_a_segment(broker, segments):
    lease = segments.shared("llm", 4 * MIB, lambda lease: lease.fill(3))
    with gmb.connect(broker.socket_dir, tenant="a") as other:
        attached = other.attach("llm")
        for one in (lease, attached):
            address = one.address
            before = _segments.totals()
            _segments.adopt(one, 0)
            assert one.released  # it is the segment's now
            found = _segments.find(address + MIB)
            assert (found.address, found.bytes, found.sealed) == (address, 4 * MIB, 1)
            assert _segments.totals().segments == before.segments + 1
            assert ctypes.string_at(address + 4 * MIB - 1, 1) == b"\3"
            with _segments.capture():
                _segments.free(address)
                assert ctypes.string_at(address, 1) == b"\3"
            assert _segments.find(address) is None
    assert broker.pool()["granted_bytes"] == 0
