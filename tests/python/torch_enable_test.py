"""gmb.torch.enable() that fails, with a real broker; without PyTorch a stand-in for it."""

import sys
import threading
import types

import pytest
from conftest import wait_until

import gmb

try:
    import torch
except ImportError:
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

import gmb.torch
from gmb.torch import _session
from gmb.torch._pools import Router


@pytest.fixture
def enable(broker, monkeypatch):
    """gmb.torch.enable() with the broker's host device for torch's first."""
    monkeypatch.setattr(_session, "_check_torch", lambda: None)
    monkeypatch.setattr(
        _session, "_uuids", lambda client, devices: {0: client.devices[0].uuid}
    )
    yield lambda **options: gmb.torch.enable(broker.socket_dir, tenant="a", **options)
    gmb.torch.disable()


def what_enable_changes():
    return (
        torch.OutOfMemoryError.__dict__.get("__init__"),
        torch.UntypedStorage.__dict__.get("_share_cuda_"),
        torch.cuda.CUDAGraph.capture_begin,
        torch.cuda.CUDAGraph.capture_end,
        [thread.name for thread in threading.enumerate()],
    )


def no_pool(router):
    raise RuntimeError("no pool")


def interrupted(client, *_, **__):
    enter(client)
    raise KeyboardInterrupt("as the scope was in")


enter = gmb.Client.enter


@pytest.mark.parametrize(
    ("owner", "name", "failing", "error"),
    [
        (Router, "make_mem_pools", no_pool, RuntimeError),
        (Router, "entered", no_pool, RuntimeError),
        (gmb.Client, "enter", interrupted, KeyboardInterrupt),
    ],
)
def test_enable_without_a_gate_that_fails_leaves_nothing(
    broker, enable, monkeypatch, owner, name, failing, error
):
    before = what_enable_changes()
    with monkeypatch.context() as patch:
        if failing is interrupted:
            patch.setattr(Router, "entered", lambda router: None)
        patch.setattr(owner, name, failing)
        with pytest.raises(error):
            enable(gate=False)
    assert not gmb.torch.enabled()
    assert what_enable_changes() == before
    wait_until(lambda: broker.sessions("a") == [])
    with pytest.raises(gmb.UnavailableError):
        gmb.active().__enter__()

    enable()  # not "enabled already"
    assert gmb.torch.enabled()


@pytest.mark.parametrize(("wait", "error"), [(-1, ValueError), ("soon", TypeError)])
def test_enable_with_a_wrong_wait_leaves_nothing(broker, enable, wait, error):
    before = what_enable_changes()
    with pytest.raises(error):
        enable(wait=wait)
    assert what_enable_changes() == before
    wait_until(lambda: broker.sessions("a") == [])


def test_disable_while_another_thread_is_in_a_scope_changes_nothing(enable, monkeypatch):
    for hook in ("entered", "leaving"):
        monkeypatch.setattr(Router, hook, lambda router: None)
    client = enable(gate=False)
    entered, go = threading.Event(), threading.Event()

    def work():
        with client.active():
            entered.set()
            go.wait()

    other = threading.Thread(target=work)
    other.start()
    entered.wait()
    with pytest.raises(RuntimeError, match="scopes are in"):
        gmb.torch.disable()
    assert gmb.torch.enabled()
    assert client.depth == 1  # this thread's
    go.set()
    other.join()
    gmb.torch.disable()
    assert not gmb.torch.enabled()
