"""K model servers, one process and one tenant each, loaded and unloaded as trials want them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from conditions import Conditions
from load.bursts import model_name
from load.replay import Target
from local_server import stop_all
from model_servers.model_server import ModelServer
from servers import Launcher


class Fleet:
    """Started in parallel: what a process needs once is not part of a trial."""

    def __init__(
        self,
        conditions: Conditions,
        memory: str,
        count: int,
        socket_dir: str | None = None,
        launch: Launcher | None = None,
    ) -> None:
        """`memory`: "gmb" or "plain". `launch`: before a program that knows nothing of gmb."""
        self._servers = conditions.servers
        self._launch = launch
        self._arguments = ["--wait-for-load"]
        if not self._servers.unchanged:
            self._arguments += ["--device", conditions.device, "--memory", memory]
            self._arguments += ["--size", conditions.size]
            if socket_dir is not None:
                self._arguments += ["--socket-dir", socket_dir]
        self._environment = conditions.server_environment()
        self._logs = conditions.out / f"servers-{memory}"
        self._logs.mkdir(parents=True, exist_ok=True)
        self.servers: list[ModelServer] = []
        self._loaded: set[str] = set()
        self.grow(count)

    def grow(self, count: int) -> None:
        """Starts more, until there are so many."""
        for number in range(len(self.servers), count):
            self.servers.append(self._started(number, f"{model_name(number)}.log"))

    def start_again(self, number: int, life: int) -> ModelServer:
        """The same command in the place of a server that has ended; nothing is loaded."""
        server = self._started(number, f"{model_name(number)}.{life}.log")
        self.servers[number] = server
        self._loaded.discard(server.name)
        return server

    def _started(self, number: int, log: str) -> ModelServer:
        name = model_name(number)
        kind, seed = self._servers.kind_of(number), str(number + 1)
        command = self._servers.command(name, kind, "--seed", seed, *self._arguments)
        if self._launch is not None:
            command = self._launch(name) + command
        return ModelServer(name, command, self._environment, self._logs / log)

    def wait_until_ready(self, seconds: float = 180.0) -> None:
        """Contexts are made and kernels are loaded."""
        deadline = time.monotonic() + seconds
        for server in self.servers:
            server.await_port(deadline)

    def targets(self) -> dict[str, Target]:
        return {server.name: server.target for server in self.servers}

    def load(self, servers: Sequence[ModelServer], share_bytes: int | None) -> dict[str, str]:
        """Those that are not, one after the other. Why, for each that could not."""
        refused = {}
        for server in servers:
            if server.name in self._loaded:
                continue
            status, said = server.ask("POST", "/load", {"share_bytes": share_bytes})
            if status == 200:
                self._loaded.add(server.name)
            else:
                refused[server.name] = str(said.get("error", status))
        return refused

    def unload(self) -> None:
        for server in self.servers:
            server.ask("POST", "/unload")
        self._loaded.clear()

    def stop(self) -> list[int]:
        """Their exit codes."""
        return stop_all(self.servers, 15.0)
