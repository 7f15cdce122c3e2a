"""Servers as child processes, and what is asked of them beside the load."""

from __future__ import annotations

import http.client
import json
import pathlib
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from load.replay import Target

_SERVER = pathlib.Path(__file__).resolve().parent / "server.py"


class ServerError(Exception):
    """A server that did not start, or gave no answer."""


class ServerProcess:
    """Started at once; serves when wait_until_it_listens() has returned."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        log: pathlib.Path | None = None,
    ) -> None:
        self.name = name
        self._log = log
        log_file = subprocess.DEVNULL if log is None else log.open("wb")
        try:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=None if log is None else log_file,
                text=True,
                env=None if environment is None else dict(environment),
            )
        finally:
            if log is not None:
                log_file.close()  # type: ignore[union-attr]
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._target: Target | None = None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())
        self._lines.put(None)

    def wait_until_it_listens(self, deadline: float) -> None:
        """`deadline` is a time of time.monotonic()."""
        prefix = "listening on "
        while self._target is None:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise ServerError(f"{self.name} does not listen in time") from None
            if line is None:
                raise ServerError(f"{self.name} ended with {self._process.wait()}: {self.said()}")
            if line.startswith(prefix):
                host, _, port = line[len(prefix) :].partition(":")
                self._target = Target(host, int(port))

    def said(self) -> str:
        """The end of its log."""
        if self._log is None:
            return "see above"
        return "\n".join(self._log.read_text(errors="replace").strip().splitlines()[-12:])

    @property
    def target(self) -> Target:
        if self._target is None:
            raise ServerError(f"{self.name} does not listen yet")
        return self._target

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, within: float = 120.0
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON answer. ServerError without one."""
        connection = http.client.HTTPConnection(self.target.host, self.target.port, timeout=within)
        try:
            connection.request(method, path, json.dumps(body or {}))
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
            return response.status, answer
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ServerError(f"{self.name}: {method} {path}: {error!r}") from error
        finally:
            connection.close()

    def stats(self) -> dict[str, Any]:
        return self.ask("GET", "/stats")[1]

    def terminate(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def wait(self, seconds: float = 40.0) -> int:
        """Its exit code; -9 when it had to be killed."""
        try:
            return self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def server_command(name: str, kind: str, *arguments: str) -> list[str]:
    """Of model_servers/server.py with this Python."""
    return [sys.executable, "-B", str(_SERVER), "--name", name, "--kind", kind, *arguments]


def stop_all(servers: Sequence[ServerProcess], seconds: float = 40.0) -> list[int]:
    """Asks all to end, and waits so long for all of them together. Their exit codes."""
    for server in servers:
        server.terminate()
    deadline = time.monotonic() + seconds
    return [server.wait(max(0.1, deadline - time.monotonic())) for server in servers]
