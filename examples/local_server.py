"""An example's servers, as child processes that say on which port they listen."""

from __future__ import annotations

import contextlib
import os
import pathlib
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from local_broker import Problem

_LISTENS = "listening on 127.0.0.1:"


class ServerError(Problem):
    """A server that does not start, or gives no answer."""


class Server:
    """Started at once. Serves when await_port() has returned, for which a `with` waits."""

    def __init__(
        self,
        name: str,
        command: Sequence[object],
        environment: Mapping[str, str] | None = None,
        log: pathlib.Path | None = None,
    ) -> None:
        """`environment`: besides this process's. `log`: for its standard error, if not ours."""
        self.name = name
        self._log = log
        self._port: int | None = None
        with contextlib.ExitStack() as files:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdout=subprocess.PIPE,
                stderr=None if log is None else files.enter_context(log.open("wb")),
                text=True,
                env={**os.environ, **(environment or {})},
            )
        self._said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """To the end, so that it never waits for us to read."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith(_LISTENS):
                    self._said.put(line[len(_LISTENS) :])
        self._said.put(None)

    def await_port(self, deadline: float | None = None) -> None:
        """`deadline` is a time of time.monotonic(); None: in three minutes."""
        if self._port is not None:
            return
        if deadline is None:
            deadline = time.monotonic() + 180
        try:
            said = self._said.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise ServerError(f"{self.name} does not listen in time{self._end_of_log()}") from None
        if said is None:
            ended = f"it ended with {self.wait(5.0)}"  # its output has, so it is about to
            raise ServerError(f"{self.name} does not serve; {ended}{self._end_of_log()}")
        self._port = int(said)

    def _end_of_log(self) -> str:
        if self._log is None:
            return ""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "".join(f"\n{line}" for line in lines[-12:])

    @property
    def port(self) -> int:
        if self._port is None:
            raise ServerError(f"{self.name} does not listen yet")
        return self._port

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Server:
        try:
            self.await_port()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def signal(self, number: int) -> None:
        """Sends it; nothing when it has ended."""
        self._process.send_signal(number)

    def kill(self) -> int:
        """SIGKILL; its exit status."""
        self._process.kill()
        return self._process.wait()

    def terminate(self) -> None:
        """Asks it to end."""
        if self._process.poll() is None:
            self._process.terminate()

    def wait(self, seconds: float = 40.0) -> int:
        """Its exit status; -9 when it had to be killed."""
        try:
            return self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def stop(self) -> int:
        self.terminate()
        return self.wait()


def stop_all(servers: Sequence[Server], seconds: float = 40.0) -> list[int]:
    """Asks all to end, and waits so long for all of them together. Their exit statuses."""
    for server in servers:
        server.terminate()
    deadline = time.monotonic() + seconds
    return [server.wait(max(0.1, deadline - time.monotonic())) for server in servers]
