"""A broker of an example's own: gmbd on a fresh folder, and the gmb command for it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

MIB = 1 << 20


def mib(nbytes):
    return f"{nbytes / MIB:.1f} MiB"


class Problem(Exception):
    """What an example cannot go on with; the message is for people."""


class Programs:
    """Where programs are: folders as in PATH, a folder of tools/gpu-bundle, or PATH."""

    def __init__(self, folders=None):
        self._folders = folders

    def command(self, name):
        """What starts it, as a list."""
        bundle = pathlib.Path(self._folders or "", "run")
        if self._folders and os.access(bundle, os.X_OK):
            return [str(bundle), name]
        found = shutil.which(name, path=self._folders)
        if found is None:
            where = self._folders or "PATH"
            raise Problem(f"{name} is not in {where}: build it, and give its folder with --bin")
        return [found]


class Broker:
    """gmbd, from the beginning of a `with` to its end."""

    def __init__(self, programs, *, device, tenants, pool=None, host_pool="0", settings=(),
                 socket_dir=None):
        """`tenants` and `settings`: lines of YAML. `socket_dir`: where nobody listens yet."""
        self._programs = programs
        daemon = programs.command("gmbd")  # before there is a folder to clean up
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="gmb-example."))
        self.socket_dir = pathlib.Path(socket_dir) if socket_dir else self._folder / "s"
        config = self._folder / "gmb.yaml"
        config.write_text("\n".join(
            [*settings, "tenants:", *(f"  - {tenant}" for tenant in tenants), ""]))
        self._command = [
            *daemon, "--config", config, "--device", device,
            "--host-pool", host_pool, "--socket-dir", self.socket_dir,
            "--state-dir", self._folder / "state",
        ]
        if pool:
            self._command += ["--pool", pool]
        self._process = None

    def __enter__(self):
        (self._folder / "state").mkdir()
        log = (self._folder / "gmbd.log").open("w+")
        self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 120
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                said = log.read().strip()[-2000:]
                self.__exit__(None, None, None)
                raise Problem(f"gmbd does not serve:\n{said}")
            time.sleep(0.02)  # between two looks
        log.close()
        return self

    def _is_ready(self):
        """It answers, and the memory for what is evicted is set aside."""
        done = self.run("--output", "json", "status")
        if done.returncode != 0:
            return False
        return json.loads(done.stdout).get("host_pool", {}).get("done", True)

    def __exit__(self, *_):
        end(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def tenant_dir(self, tenant):
        return self.socket_dir / "tenants" / tenant

    def command(self, *arguments):
        return [*self._programs.command("gmb"), "--socket-dir", str(self.socket_dir), *arguments]

    def run(self, *arguments):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)

    def ask(self, *arguments):
        done = self.run("--output", "json", *arguments)
        if done.returncode != 0:
            raise Problem(f"gmb {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def pool(self):
        return self.ask("status")["pools"][0]

    def free_bytes(self):
        """What nobody holds."""
        pool = self.pool()
        return pool["capacity_bytes"] - pool["granted_bytes"] - pool["unreturned_bytes"]

    def tenant(self, name):
        return self.ask("tenant", "get", name)["pools"][0]


class Server:
    """An example's server, from the beginning of a `with` to its end."""

    def __init__(self, name, command, environment=None, patience=120):
        self.name, self._patience = name, patience
        self._command, self._environment = [str(part) for part in command], environment
        self.port = self._process = None

    def start(self):
        """Without waiting for it: see await_port."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(self._environment or {})},
        )
        return self

    def await_port(self):
        line = self._process.stdout.readline().strip()
        prefix = "listening on 127.0.0.1:"
        if not line.startswith(prefix):
            raise Problem(f"{self.name} does not serve; it ended with {self.stop()}")
        self.port = int(line[len(prefix):])
        return self

    def __enter__(self):
        return self.start().await_port()

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Asks it to end; its exit status."""
        return end(self._process)


def end(process, patience=30):
    """SIGTERM, and SIGKILL where that does not help; the exit status."""
    if process is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
    finally:
        if process.stdout:
            process.stdout.close()
