"""llama.cpp's server as a child process, asked over a Unix socket."""

from __future__ import annotations

import contextlib
import glob
import http.client
import json
import os
import pathlib
import re
import signal
import site
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

from model_servers.model import Refused

_START_SECONDS = 90.0
_ANSWER_SECONDS = 60.0
_END_SECONDS = 10.0
# It says this of each of its buffers, and ends like this when one cannot be had.
_DEVICE_BUFFER = re.compile(r"\b(CUDA\d+ +\w+) buffer size = +([0-9.]+) MiB")
_NO_MEMORY = re.compile(r"out of memory|failed to allocate", re.IGNORECASE)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path, within: float) -> None:
        super().__init__("localhost", timeout=within)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _library_path() -> str:
    """This process's, and behind it the folders in which pip put CUDA's libraries."""
    own = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    return ":".join([*own, *(lib for p in packages for lib in glob.glob(f"{p}/nvidia/*/lib"))])


class LlamaProcess:
    """Serves when the constructor returns, until end()."""

    def __init__(self, program: pathlib.Path, model: int, context: int) -> None:
        """`model`: a file's descriptor. Refused when memory does not suffice."""
        self._work = tempfile.TemporaryDirectory(prefix="gmb-llama.")
        self._socket = pathlib.Path(self._work.name, "llama.sock")
        self._log = pathlib.Path(self._work.name, "llama.log")
        options = {
            "-m": f"/proc/self/fd/{model}",
            "--host": self._socket,
            "-ngl": 99,
            "-fit": "off",  # nothing is left to it
            "-c": context,
            "--parallel": 1,
            "--cache-ram": 0,  # otherwise a request begins with a copy of the last one's state
            "--threads": 1,  # as the other kinds have it
            "--log-file": self._log,
            "--verbosity": 4,  # with the sizes of buffers
        }
        # It ends with the thread that starts it, also when this process is killed.
        command = ["setpriv", "--pdeathsig", "KILL", program]
        command += [word for option in options.items() for word in option]
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,  # ours is for who drives us
            env={**os.environ, "LD_LIBRARY_PATH": _library_path()},
            pass_fds=[model],
        )
        try:
            self._await_health()
            self.device_bytes = self._said_of_buffers()
        except BaseException:
            self._kill()
            raise

    def _await_health(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_healthy():
            if self._process.poll() is not None:
                raise self._death()
            if time.monotonic() > deadline:
                raise RuntimeError(f"llama-server does not serve in time{self._end_of_log()}")
            time.sleep(0.02)  # between two looks

    def _is_healthy(self) -> bool:
        try:
            return self._ask("GET", "/health", None, within=5.0)[0] == 200
        except (OSError, ValueError, http.client.HTTPException):
            return False  # it does not listen yet

    def _said_of_buffers(self) -> int:
        """It goes on without a GPU where the driver has none for it."""
        said = self._log.read_text(errors="replace")
        sizes = dict(_DEVICE_BUFFER.findall(said))  # what is said again, counts
        if not sizes:
            raise RuntimeError(f"llama-server has nothing on the device{self._end_of_log()}")
        return int(sum(map(float, sizes.values())) * (1 << 20))

    def _death(self) -> Exception:
        """Of a process that has ended: Refused, when it lacked memory."""
        code = self._process.returncode
        for line in self._end_of_log().splitlines():
            if _NO_MEMORY.search(line):
                return Refused(f"llama-server ended with {code}: {line}")
        return RuntimeError(f"llama-server ended with {code}{self._end_of_log()}")

    def _end_of_log(self) -> str:
        with contextlib.suppress(OSError):
            return ": " + self._log.read_text(errors="replace").strip()[-1500:]
        return ""

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None, within: float
    ) -> tuple[int, dict[str, Any]]:
        connection = _Connection(self._socket, within)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
            return response.status, answer
        finally:
            connection.close()

    def complete(self, question: dict[str, Any]) -> dict[str, Any]:
        """Its answer. RuntimeError, when there is none."""
        try:
            status, answer = self._ask("POST", "/completion", question, _ANSWER_SECONDS)
        except (OSError, ValueError, http.client.HTTPException) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)  # it may be about to end
            died = self._process.returncode is not None
            # It cannot go on without memory that it wanted, so it is no use to try again.
            text = str(self._death()) if died else f"llama-server: {error!r}"
            raise RuntimeError(text) from error
        if status != 200:
            raise RuntimeError(f"llama-server answers {status}: {answer}")
        return answer

    def end(self) -> None:
        """In order. RuntimeError when it does not end with 0."""
        self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_END_SECONDS)
        code, said = self._process.returncode, self._end_of_log()
        self._kill()
        if code != 0:
            raise RuntimeError(f"llama-server ended with {code}{said}")

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._work.cleanup()
