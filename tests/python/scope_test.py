"""Scopes: nested, in threads, as decorators, and while memory is away."""

import threading

import pytest
from conftest import MIB

import gmb


def test_a_scope_nests_and_belongs_to_its_thread(client):
    client.gate_on()
    with gmb.active(), gmb.active(client), client.active(capture=True):
        assert client.depth == 3
        depths = []
        thread = threading.Thread(target=lambda: depths.append(client.depth))
        thread.start()
        thread.join()
        assert depths == [0]
    assert client.depth == 0
    with pytest.raises(gmb.FailedPreconditionError, match="in no scope"):
        client.leave()


def test_a_decorator_enters_for_each_call(client):
    @gmb.active()
    def depth(add):
        """Says it."""
        return client.depth + add

    assert depth(10) == 11
    assert depth.__name__ == "depth"
    assert depth.__doc__ == "Says it."
    assert client.depth == 0


def test_a_decorator_leaves_when_the_function_raises(client):
    @gmb.active()
    def fail():
        raise KeyError("as planned")

    with pytest.raises(KeyError):
        fail()
    assert client.depth == 0


def test_what_would_hold_a_scope_while_it_waits_is_refused():
    async def coroutine():
        pass

    def generator():
        yield

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match="inside"):
            gmb.active()(function)


def test_without_a_session_it_is_said():
    with pytest.raises(gmb.UnavailableError, match="gmb.connect"):
        with gmb.active():
            pass


def test_the_first_session_that_is_open_is_the_default(broker):
    first = gmb.connect(broker.socket_dir, tenant="a")
    second = gmb.connect(broker.socket_dir, tenant="b")
    with gmb.active():
        assert (first.depth, second.depth) == (1, 0)
    first.close()
    with pytest.raises(gmb.UnavailableError):
        gmb.active().__enter__()
    third = gmb.connect(broker.socket_dir, tenant="a")
    with gmb.active():
        assert third.depth == 1
    second.close()
    third.close()


def test_memory_that_was_taken_is_back_inside_a_scope(broker, client):
    lease = client.acquire(8 * MIB)
    view = lease.view()
    view[:4] = b"keep"
    view[-4:] = b"this"
    client.gate_on(park_after=0.001)
    assert broker.reclaim("a", 8 * MIB)
    assert broker.evicted_bytes("a") == 8 * MIB
    with gmb.active():
        assert bytes(view[:4]) + bytes(view[-4:]) == b"keepthis"
        assert broker.evicted_bytes("a") == 0
    view.release()
    lease.release()


def test_threads_enter_and_leave_at_once(client):
    client.gate_on(park_after=0.001)
    failures = []

    def work():
        try:
            for _ in range(300):
                with gmb.active():
                    with gmb.active():
                        assert client.depth == 2
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_turning_the_gate_off_keeps_the_memory(broker, client):
    lease = client.acquire(2 * MIB)
    client.gate_on(park_after=0.001)
    client.gate_off(wait=10)
    assert not broker.reclaim("a", 2 * MIB)
    assert broker.evicted_bytes("a") == 0
    lease.release()


def test_closing_is_refused_while_a_scope_is_in(client):
    with gmb.active():
        with pytest.raises(gmb.FailedPreconditionError, match="scopes"):
            client.close()
    client.close()
    assert client.closed


def test_hooks_run_beside_the_outermost_scope_alone(client):
    class Hooks:
        said = []

        def entered(self):
            self.said.append("in")

        def leaving(self):
            self.said.append("out")

    client._hooks = Hooks()
    with gmb.active(), gmb.active():
        assert Hooks.said == ["in"]
    assert Hooks.said == ["in", "out"]


def test_a_hook_that_fails_lets_no_scope_in(client):
    class Hooks:
        def entered(self):
            raise OSError("as planned")

        def leaving(self):
            raise AssertionError("nothing was entered")

    client._hooks = Hooks()
    with pytest.raises(OSError, match="as planned"):
        gmb.active().__enter__()
    client._hooks = None
    assert client.depth == 0
    client.close()  # no scope is in
