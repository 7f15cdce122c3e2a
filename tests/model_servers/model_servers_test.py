"""The example as its user starts it, on the host device."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import model_servers
import pytest
from local_broker import Broker, Programs
from model_servers.host_model import expected_sum
from model_servers.kinds import KINDS
from model_servers.model_server import ModelServer, server_command

HERE = pathlib.Path(list(model_servers.__path__)[0])
BIN = pathlib.Path(os.environ["GMB_BIN_DIR"])
ENCODER = KINDS["encoder"].host


def test_three_models_share_what_none_of_them_could_have_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-B", HERE / "run", "--device", "host", "--bin", BIN]
        + ["--seconds", "8", "--seed", "1", "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    print(done.stdout, done.stderr)
    # It has judged: nothing refused, nothing wrong, something lent, more than a share held.
    assert done.returncode == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["requests"] == summary["ok"] > 50
    assert summary["wrong"] == 0 and summary["met_evicted"] > 0
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == summary["requests"]


def test_without_the_programs_it_says_so(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-B", HERE / "run", "--device", "host", "--bin", tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert done.returncode == 1 and f"gmbd is not in {tmp_path}" in done.stderr
    assert not list(temporary.glob("gmb-*"))


def test_without_the_package_it_says_what_to_install():
    done = subprocess.run(
        # No packages but Python's own.
        [sys.executable, "-B", "-I", "-S", HERE / "run", "--device", "host", "--bin", BIN],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "model_servers: there is no Python package gmb here "
        "(pip install ./client/python installs gmb)"
    ]


@pytest.fixture
def broker():
    tenants = {"a": {"limit": "100%"}, "small": {"limit": "14MiB"}}
    with Broker(
        Programs(str(BIN)), device="host", pool="24MiB", host_pool="32MiB", tenants=tenants
    ) as started:
        yield started


def start_server(broker, name):
    command = server_command(
        name, "encoder", "--device", "host", "--seed", "5", "--socket-dir", str(broker.socket_dir)
    )
    server = ModelServer(name, command)
    server.await_port(time.monotonic() + 60)
    return server


def test_answers_are_the_same_after_an_eviction(broker):
    server = start_server(broker, "a")
    expected = expected_sum(ENCODER, 5, 4)
    status, said = server.ask("POST", "/infer", {"batch": 4})
    assert (status, said["sum"]) == (200, expected)
    # An operator takes the weights.
    broker.ask("reclaim", "a", "--bytes", str(ENCODER.weights_bytes), "--wait", "30s")
    assert broker.tenant("a")["evicted_bytes"] >= ENCODER.weights_bytes
    assert server.stats()["held_bytes"] == 0
    status, said = server.ask("POST", "/infer", {"batch": 4})
    assert (status, said["sum"], said["met_evicted"]) == (200, expected, True)
    assert server.stats()["held_bytes"] >= ENCODER.weights_bytes
    server.terminate()
    assert server.wait() == 0


def test_wrong_bytes_would_be_seen():
    assert expected_sum(ENCODER, 5, 4) != expected_sum(ENCODER, 6, 4)
    assert expected_sum(ENCODER, 5, 4) != expected_sum(ENCODER, 5, 5)


def test_a_limit_refuses_with_the_brokers_reason(broker):
    server = start_server(broker, "small")
    status, said = server.ask("POST", "/infer", {"batch": 64})
    assert status == 503 and "limit" in said["error"]
    assert server.ask("POST", "/infer", {"batch": 4})[0] == 200
    assert server.stats()["refused"] == 1
    server.terminate()
    assert server.wait() == 0


def test_without_a_broker_the_server_says_so(tmp_path):
    command = server_command(
        "a", "encoder", "--device", "host", "--socket-dir", str(tmp_path / "nobody")
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "nobody" in done.stderr


def test_an_interrupt_ends_it_in_order(broker):
    server = start_server(broker, "a")
    os.kill(server.pid, signal.SIGINT)
    assert server.wait() == 0
