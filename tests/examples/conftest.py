"""The examples' own broker, for tests of their servers."""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

from local_broker import Broker, Programs  # noqa: E402
from local_server import Server  # noqa: E402

TENANTS = {"a": {"guarantee": "16MiB", "limit": "64MiB"}, "b": {"limit": "100%"},
           "small": {"limit": "2MiB"}}


def wait_until(holds, seconds=30):
    """Polls until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.005)


class Answer:
    def __init__(self, response):
        self.code, self.text = response.status, response.read().decode()

    def json(self):
        return json.loads(self.text)


def ask(port, method, path, body=None):
    """`body` as it is, or as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, data)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def infer(port, rows):
    return ask(port, "POST", "/infer", {"batch": rows})


def ends(command, environment=None):
    """Runs a program that is to fail: its exit status and what it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **(environment or {})})
    return done.returncode, done.stderr


@pytest.fixture
def programs():
    return Programs(os.environ["GMB_PROGRAMS"])


@pytest.fixture
def broker(programs):
    with Broker(programs, device="host", pool="128MiB", tenants=TENANTS, host_pool="64MiB",
                arguments=["--lend-parked-guarantees"]) as started:
        yield started


@pytest.fixture
def start(broker):
    """Starts servers, which end with the test, and before the broker: it would wait for them."""
    assert broker
    servers = []

    def started(command):
        servers.append(Server("the server", command))
        servers[-1].await_port()
        return servers[-1]

    yield started
    for server in servers:
        server.stop()
