"""A real gmbd on the host device for each test that asks for one."""

import json
import os
import pathlib
import subprocess
import time

import pytest

import gmb

MIB = 1 << 20
CONFIG = """tenants:
  - {name: a, guarantee: 25%, limit: 100%}
  - {name: b, guarantee: 25%, limit: 100%}
  - {name: small, limit: 8MiB}
"""


def wait_until(holds, seconds=30):
    """Polls until it holds; says what did not."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.005)


class Broker:
    """gmbd with 64 MiB of host memory or another device, and the gmb command for it."""

    def __init__(self, folder: pathlib.Path, device="host:64MiB", *flags, **environment):
        self.socket_dir = folder / "s"
        config = folder / "gmb.yaml"
        config.write_text(CONFIG)
        self._environment = {**os.environ, **environment}
        self._log = (folder / "gmbd.log").open("wb")
        self._process = subprocess.Popen(
            [
                os.environ["GMBD_PROGRAM"],
                "--config", config, "--device", device, "--host-pool", "64MiB",
                "--socket-dir", self.socket_dir, "--state-dir", folder, *flags,
            ],
            env=self._environment,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        wait_until(self._answers)

    def _answers(self):
        assert self._process.poll() is None, "gmbd ended"
        return self._run("status").returncode == 0

    def _run(self, *arguments):
        return subprocess.run(
            [os.environ["GMB_PROGRAM"], "--socket-dir", self.socket_dir, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    def gmb(self, *arguments):
        """The output of the command, as JSON."""
        done = self._run("--output", "json", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    def start(self, *arguments):
        """The command, as what it becomes under `gmb run` too."""
        return subprocess.Popen(
            [os.environ["GMB_PROGRAM"], "--socket-dir", self.socket_dir, *arguments],
            env=self._environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def pool(self):
        return self.gmb("status")["pools"][0]

    def evicted_bytes(self, name):
        return self.gmb("tenant", "get", name)["pools"][0]["evicted_bytes"]

    def resident_bytes(self, name):
        return self.gmb("tenant", "get", name)["pools"][0]["resident_bytes"]

    def sessions(self, tenant):
        return self.gmb("session", "list", "--tenant", tenant)["sessions"]

    def reclaim(self, tenant, nbytes, wait="10s"):
        """Whether the broker took that much within a while."""
        done = self._run("reclaim", tenant, "--bytes", str(nbytes), "--wait", wait)
        return done.returncode == 0

    @property
    def pid(self):
        return self._process.pid

    def kill(self):
        self._process.kill()
        self._process.wait()

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()


@pytest.fixture
def broker(tmp_path):
    started = Broker(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def client(broker):
    with gmb.connect(broker.socket_dir, tenant="a") as connected:
        yield connected
