"""A gmbd of its own in a temporary folder, and the gmb command for it."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any


class BrokerError(Exception):
    """The broker does not start or answer. The text says what it wrote."""


class Programs:
    """How gmbd and gmb are started: from a folder, with a bundle's `run`, or from PATH."""

    def __init__(self, folder: pathlib.Path | None = None) -> None:
        self._folder = folder

    def command(self, name: str) -> list[str]:
        if self._folder is None:
            found = shutil.which(name)
            if found is None:
                raise BrokerError(f"no {name} in PATH: install gmb, or say where it is")
            return [found]
        if (self._folder / "run").is_file():  # tools/gpu-bundle
            return [str(self._folder / "run"), name]
        if not (self._folder / name).is_file():
            raise BrokerError(f"no {name} in {self._folder}")
        return [str(self._folder / name)]


class Broker:
    """Serves until stop(). Tenants as in the configuration file: name to its settings."""

    def __init__(
        self,
        programs: Programs,
        tenants: Mapping[str, Mapping[str, str]],
        arguments: Sequence[str],
        log: pathlib.Path | None = None,
    ) -> None:
        self._programs = programs
        program = programs.command("gmbd")  # before there is a folder to remove
        programs.command("gmb")
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="gmb-"))
        self.socket_dir = str(self._folder / "s")
        self._log = log or self._folder / "gmbd.log"
        config = self._folder / "gmb.yaml"
        config.write_text(_config(tenants))
        command = [*program, "--config", str(config), *arguments]
        command += ["--socket-dir", self.socket_dir, "--state-dir", str(self._folder)]
        with self._log.open("wb") as log_file:
            self._process = subprocess.Popen(command, stdout=log_file, stderr=subprocess.STDOUT)

    def wait_until_it_answers(self, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while self._run("status").returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop(keep_folder=True)
                said = self._log.read_text(errors="replace").strip().splitlines()[-5:]
                raise BrokerError("gmbd does not serve:\n" + "\n".join(said))
            time.sleep(0.02)

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._programs.command("gmb"), "--socket-dir", self.socket_dir]
        return subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=60, check=False
        )

    def gmb(self, *arguments: str) -> Any:
        """What the command says, as JSON."""
        done = self._run("--output", "json", *arguments)
        if done.returncode != 0:
            raise BrokerError(f"gmb {' '.join(arguments)}: {done.stdout}{done.stderr}".strip())
        return json.loads(done.stdout) if done.stdout.strip() else None

    def pool(self) -> dict[str, Any]:
        """The first device pool, as `gmb status` has it."""
        pool: dict[str, Any] = self.gmb("status")["pools"][0]
        return pool

    def tenant_pool(self, name: str) -> dict[str, Any]:
        pool: dict[str, Any] = self.gmb("tenant", "get", name)["pools"][0]
        return pool

    def stop(self, keep_folder: bool = False) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if not keep_folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _config(tenants: Mapping[str, Mapping[str, str]]) -> str:
    lines = ["tenants:"]
    for name, settings in tenants.items():
        parts = [f"name: {name}", *(f"{key}: {value}" for key, value in settings.items())]
        lines.append("  - {" + ", ".join(parts) + "}")
    return "\n".join(lines) + "\n"
