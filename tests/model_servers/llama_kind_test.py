"""bench/consolidation's kind "llama": a program whose child is llama.cpp's server, here a fake."""

import argparse
import os
import pathlib
import select
import signal
import stat
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parents[1] / "bench" / "consolidation"
sys.path.insert(0, str(BENCH))

from model_servers.model_server import ModelServer  # noqa: E402
from program_kinds import USUAL, kinds_of  # noqa: E402
from random_server import processes_of  # noqa: E402

# The bytes that the fake says that it has on the device: its weights and its
# cache.
HELD = int((1025.5 + 32) * (1 << 20))
PATIENCE = 30
# A model's file needs packages that may not be here: these bytes follow from its seed, too.
MAKER = """
def make(path, *shape_and_seed):
    with open(path, "w") as file:
        file.write(repr(shape_and_seed))
"""


@pytest.fixture
def llama_cpp(tmp_path, monkeypatch):
    folder = tmp_path / "llama"
    (folder / "gguf").mkdir(parents=True)
    server = folder / "llama-server"
    server.write_text(f'#!/bin/sh\nexec {sys.executable} -B {HERE}/fake_llama_server.py "$@"\n')
    server.chmod(stat.S_IRWXU)
    (tmp_path / "llama_model.py").write_text(MAKER)
    monkeypatch.setenv("LLAMA_CPP", str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    # The path of a socket has to be short, and servers that are killed leave theirs.
    with tempfile.TemporaryDirectory(prefix="gmb-llama-test.") as work:
        monkeypatch.setenv("TMPDIR", work)
        yield folder


@pytest.fixture
def start(llama_cpp):
    started = []

    def one(seed=1, **environment):
        command = [sys.executable, "-B", BENCH / "program_server.py", "--name", "m00"]
        command += ["--kind", "llama", "--seed", str(seed), "--wait-for-load"]
        started.append(ModelServer("m00", command, environment))
        started[-1].await_port()
        return started[-1]

    yield one
    for server in started:
        server.kill()


def loaded(server):
    assert server.ask("POST", "/load", {}) == (200, server.stats())
    return server


def answer(server, batch):
    status, said = server.ask("POST", "/infer", {"batch": batch})
    assert status == 200, said
    return said["sum"]


def child_of(server):
    """A descriptor for the end of llama-server, and its process."""
    own, child = processes_of(server)
    assert own == server.pid
    return os.pidfd_open(child), child


def ends(fd):
    return bool(select.select([fd], [], [], PATIENCE)[0])


def test_an_answer_follows_from_the_weights_and_the_batch(start):
    first, other = loaded(start(seed=1)), loaded(start(seed=2))
    sums = [answer(first, batch) for batch in (1, 2, 64)]
    assert len({*sums, answer(other, 1)}) == 4
    assert [answer(first, batch) for batch in (1, 2, 64)] == sums
    assert first.stats()["held_bytes"] == first.stats()["peak_bytes"] == HELD


def test_nothing_is_held_before_and_after_and_the_next_one_answers_the_same(start):
    server = start()
    assert processes_of(server) == [server.pid]
    assert server.stats()["held_bytes"] == 0
    before = answer(loaded(server), 8)
    end, _ = child_of(server)
    server.ask("POST", "/unload")
    assert ends(end)
    assert (processes_of(server), server.stats()["held_bytes"]) == ([server.pid], 0)
    assert answer(loaded(server), 8) == before


def test_llama_server_has_the_environment_of_gmb_run(start):
    _, child = child_of(loaded(start(LD_PRELOAD="libc.so.6", GMB_TENANT="m00")))
    environment = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    assert b"LD_PRELOAD=libc.so.6" in environment
    assert b"GMB_TENANT=m00" in environment


def test_sigterm_ends_both(start):
    server = loaded(start())
    end, _ = child_of(server)
    assert server.stop() == 0
    assert ends(end)


def test_sigkill_ends_both(start):
    server = loaded(start())
    end, _ = child_of(server)
    server.kill()
    assert ends(end)


def test_without_memory_the_load_is_refused(start):
    status, said = start(FAKE_LLAMA="no-memory").ask("POST", "/load", {})
    assert status == 503
    assert said["error"].startswith("llama-server ended with 1: E alloc_tensor_range: failed to")


def test_a_server_without_a_gpu_is_none(start):
    server = start(FAKE_LLAMA="no-gpu")
    status, said = server.ask("POST", "/load", {})
    assert status == 500
    assert "nothing on the device" in said["error"]
    assert processes_of(server) == [server.pid]


def test_a_server_that_dies_is_a_fault(start):
    server = loaded(start(FAKE_LLAMA="dies"))
    status, said = server.ask("POST", "/infer", {"batch": 1})
    assert status == 500
    assert f"ended with {-signal.SIGKILL}" in said["error"]
    assert server.stop() != 0


def test_llama_is_named_only_where_it_is(llama_cpp, monkeypatch):
    assert kinds_of("llama,torch") == ("llama", "torch")
    assert kinds_of(",".join(USUAL)) == USUAL
    (llama_cpp / "llama-server").unlink()
    with pytest.raises(argparse.ArgumentTypeError, match=str(llama_cpp)):
        kinds_of("torch,llama")
    monkeypatch.delenv("LLAMA_CPP")
    with pytest.raises(argparse.ArgumentTypeError, match="not set"):
        kinds_of("llama")


@pytest.mark.parametrize("text", ["torch,lama", "", "torch,torch"])
def test_other_kinds_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        kinds_of(text)
