"""An example's server, as a process that says on which port it listens."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from local_broker import Problem, end


class Server:
    """From the beginning of a `with` to its end."""

    def __init__(
        self, name: str, command: Sequence[object], environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command, self._environment = [str(part) for part in command], environment
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def start(self) -> Server:
        """Without waiting for it: see await_port."""
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(self._environment or {})},
        )
        return self

    def await_port(self) -> Server:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        prefix = "listening on 127.0.0.1:"
        if not line.startswith(prefix):
            raise Problem(f"{self.name} does not serve; it ended with {self.stop()}")
        self.port = int(line[len(prefix) :])
        return self

    def __enter__(self) -> Server:
        return self.start().await_port()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int | None:
        """Asks it to end; its exit status, None where it was not started."""
        return None if self._process is None else end(self._process)
