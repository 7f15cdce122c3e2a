"""A broker of an example's own: gmbd on a fresh folder, and the gmb command for it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

MIB = 1 << 20


def mib(nbytes: float) -> str:
    return f"{nbytes / MIB:.1f} MiB"


class Problem(Exception):
    """An example cannot go on; the message is for people."""


def need_packages(*names: str) -> None:
    """Problem unless this Python has them all."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise Problem(
                f"there is no Python package {name} here (pip install ./client/python installs gmb)"
            )


class Programs:
    """Where programs are: folders as in PATH, a folder of tools/gpu-bundle, or PATH."""

    def __init__(self, folders: str | None = None) -> None:
        self._folders = folders

    def command(self, name: str) -> list[str]:
        """The command that starts it, as a list."""
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

    def __init__(
        self,
        programs: Programs,
        *,
        device: str,
        pool: int | str,
        tenants: Mapping[str, Mapping[str, object]],
        host_pool: int | str,
        arguments: Sequence[str] = (),
        socket_dir: str | None = None,
        log: pathlib.Path | None = None,
        await_host_pool: bool = True,
    ) -> None:
        """Sizes are bytes, or as in "64MiB".

        `device`: "host" or, say, "cuda:0". `tenants`: name to settings, as in the
        configuration file. `arguments`: further ones of gmbd. `socket_dir`: where nobody
        listens yet. With `await_host_pool` the `with` begins once that has been prepared.
        """
        self._programs = programs
        daemon = programs.command("gmbd")
        programs.command("gmb")  # that both are there, before there is a folder to clean up
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="gmb-example."))
        self.socket_dir = pathlib.Path(socket_dir) if socket_dir else self._folder / "s"
        self._log = log or self._folder / "gmbd.log"
        self._await_host_pool = await_host_pool
        config, state = self._folder / "gmb.yaml", self._folder / "state"
        config.write_text(_config(tenants))
        state.mkdir()
        # A host device has its size in its name.
        memory = [f"host:{pool}"] if device == "host" else [device, "--pool", str(pool)]
        self._command = [
            *(*daemon, "--config", str(config), "--device", *memory),
            *("--host-pool", str(host_pool), *arguments),
            *("--socket-dir", str(self.socket_dir), "--state-dir", str(state)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Broker:
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    self._command, stdout=log, stderr=subprocess.STDOUT
                )
            self._await_answer(self._process)
            if self._await_host_pool:
                self.prepared_host_pool()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await_answer(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 120
        while self.run("status").returncode != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                said = self._log.read_text(errors="replace").strip()[-2000:]
                raise Problem(f"gmbd does not serve:\n{said}")
            time.sleep(0.02)  # between two looks

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            end(self._process, patience=40)  # it waits 30 s for sessions that are open
        shutil.rmtree(self._folder, ignore_errors=True)

    def prepared_host_pool(self) -> dict[str, Any]:
        """Waits until the memory for what is evicted is set aside; its status then."""
        deadline = time.monotonic() + 120
        while True:
            pool: dict[str, Any] = self.ask("status")["host_pool"]
            if pool["done"]:
                return pool
            if time.monotonic() > deadline:
                raise Problem(f"the host pool does not get ready: {pool}")
            time.sleep(0.1)  # between two looks

    def tenant_dir(self, tenant: str) -> pathlib.Path:
        return self.socket_dir / "tenants" / tenant

    def command(self, *arguments: str) -> list[str]:
        return [*self._programs.command("gmb"), "--socket-dir", str(self.socket_dir), *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=60, check=False
        )

    def ask(self, *arguments: str) -> Any:
        """The answer of the gmb command, as JSON."""
        done = self.run("--output", "json", *arguments)
        if done.returncode != 0:
            raise Problem(f"gmb {' '.join(arguments)}: {done.stdout}{done.stderr}".strip())
        return json.loads(done.stdout) if done.stdout.strip() else None

    def pool(self) -> dict[str, Any]:
        """The device pool, as `gmb status` has it."""
        pool: dict[str, Any] = self.ask("status")["pools"][0]
        return pool

    def free_bytes(self) -> int:
        """The bytes that nobody holds."""
        pool = self.pool()
        free: int = pool["capacity_bytes"] - pool["granted_bytes"] - pool["unreturned_bytes"]
        return free

    def tenant(self, name: str) -> dict[str, Any]:
        """The tenant's quota and use of the device pool."""
        pool: dict[str, Any] = self.ask("tenant", "get", name)["pools"][0]
        return pool


def _config(tenants: Mapping[str, Mapping[str, object]]) -> str:
    lines = ["tenants:"]
    for name, settings in tenants.items():
        parts = [f"name: {name}", *(f"{key}: {value}" for key, value in settings.items())]
        lines.append("  - {" + ", ".join(parts) + "}")
    return "\n".join(lines) + "\n"


def end(process: subprocess.Popen[Any], patience: float = 30) -> int:
    """SIGTERM, and SIGKILL where that does not help; the exit status."""
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
