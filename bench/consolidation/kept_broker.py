"""A broker with a keeper beside it: it may be killed, and the next one goes on."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import tempfile
import time
from typing import Any

from local_broker import Broker, Problem, Programs, end


class Keeper:
    """gmb-keeper, from the beginning of a `with` to its end."""

    def __init__(self, programs: Programs, log: pathlib.Path) -> None:
        self._programs = programs
        self._log = log
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="gmb-keeper."))
        self.socket = self._folder / "keeper" / "keeper.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Keeper:
        command = [*self._programs.command("gmb-keeper"), "--socket", str(self.socket)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30
        while self._ask().returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = self._log.read_text(errors="replace").strip()[-2000:]
                self.__exit__()
                raise Problem(f"gmb-keeper does not serve:\n{said}")
            time.sleep(0.02)  # between two looks
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> int:
        """Its exit status."""
        return 0 if self._process is None else end(self._process, patience=10)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _ask(self) -> subprocess.CompletedProcess[str]:
        command = [*self._programs.command("gmb"), "--output", "json", "keeper", "status"]
        return subprocess.run(
            [*command, "--socket", str(self.socket)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        done = self._ask()
        if done.returncode != 0:
            raise Problem(f"gmb keeper status: {done.stdout}{done.stderr}".strip())
        status: dict[str, Any] = json.loads(done.stdout)
        return status


class KeptBroker(Broker):
    """Its `arguments` name a keeper."""

    def replace(self, after: float) -> None:
        """SIGKILL, and so long after its death the next one with the same flags, until it serves."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        time.sleep(after)  # so long nobody serves
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        self._await_answer(self._process)

    def stop(self) -> int:
        """In order; its exit status."""
        return 0 if self._process is None else end(self._process, patience=10)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
