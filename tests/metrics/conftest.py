"""A real gmbd that serves metrics, asked as Prometheus asks it."""

import http.client
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from local_broker import Broker, Programs  # noqa: E402

MIB = 1 << 20
TENANTS = {"a": {"limit": "100%"},
           "b": {"guarantee": "64MiB"},
           "small": {"limit": "2MiB"},
           "quiet": {"guarantee": "16MiB", "weight": 2}}
SERIES = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def wait_until(holds, seconds=60):
    """Polls until it holds; what it holds with."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.02)
    return value


class Metrics(dict):
    """(name, labels in order) -> value, of one text."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        for line in text.splitlines():
            if line.startswith("#") or not line:
                continue
            found = SERIES.match(line)
            assert found, f"no series: {line}"
            labels = tuple(sorted(LABEL.findall(found[2] or "")))
            assert (found[1], labels) not in self, f"twice: {line}"
            self[found[1], labels] = float(found[3])

    def of(self, name, **labels):
        """The one series with exactly these labels; None: there is none."""
        return self.get((name, tuple(sorted(labels.items()))))

    def sum(self, name, **labels):
        return sum(value for (other, its), value in self.items()
                   if other == name and set(labels.items()) <= set(its))


class Scraped(Broker):
    """A broker with --http."""

    def __init__(self, programs, tmp_path, *arguments, http="127.0.0.1:0", tenants=None, **options):
        self.log = tmp_path / "gmbd.log"
        super().__init__(programs, device="host", pool="128MiB", host_pool="128MiB",
                         tenants=tenants or TENANTS, log=self.log,
                         arguments=["--http", http, *arguments], **options)

    def address(self):
        return wait_until(lambda: re.search(r"serving_http.*address=(\S+)", self.log.read_text()))[1]

    @property
    def port(self):
        return int(self.address().rsplit(":", 1)[1])

    def get(self, path="/metrics", **headers):
        """(status, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metrics(self):
        status, text = self.get()
        assert status == 200
        return Metrics(text)

    def fresh(self):
        """By the operators' call, which is never a second old."""
        done = self.run("metrics")
        assert done.returncode == 0, done.stderr
        return Metrics(done.stdout)

    def hold(self, tenant, nbytes, *arguments):
        return subprocess.Popen(
            self.command("hold", "--tenant", tenant, "--bytes", str(nbytes), *arguments),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def programs():
    return Programs(os.environ["GMB_PROGRAMS"])


@pytest.fixture
def broker(programs, tmp_path):
    with Scraped(programs, tmp_path) as started:
        yield started


@pytest.fixture
def holders(broker):
    """Starts clients, which end with the test, and before the broker."""
    running = []

    def hold(*arguments):
        running.append(broker.hold(*arguments))
        return running[-1]

    yield hold
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def loaded(broker, holders):
    """Three idle processes of a; b's guarantee takes the memory of one or more."""
    for running in (1, 2, 3):
        holders("a", 32 * MIB, "--idle")
        wait_until(lambda n=running: broker.fresh().sum(
            "gmb_tenant_sessions", tenant="a", state="parked") == n)
    holders("b", 64 * MIB, "--wait", "60s")
    holders("small", 16 * MIB)  # above its limit
    wait_until(lambda: broker.fresh().sum("gmb_requests_total", tenant="small",
                                          outcome="refused") == 1)
    wait_until(lambda: broker.fresh().sum("gmb_evictions_total", outcome="done") >= 1)
    wait_until(lambda: broker.fresh().sum("gmb_requests_total", tenant="b", outcome="granted") == 1)
    return broker
