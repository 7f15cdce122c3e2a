"""A server of a model as a child process, and what is asked of it beside the load."""

from __future__ import annotations

import http.client
import json
import pathlib
import sys
from typing import Any

from load.replay import Target
from local_server import Server, ServerError

_SERVER = pathlib.Path(__file__).resolve().parent / "server.py"


class ModelServer(Server):
    @property
    def target(self) -> Target:
        return Target("127.0.0.1", self.port)

    def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, within: float = 120.0
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON answer. ServerError without one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=within)
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


def server_command(name: str, kind: str, *arguments: str) -> list[str]:
    """Of model_servers/server.py with this Python."""
    return [sys.executable, "-B", str(_SERVER), "--name", name, "--kind", kind, *arguments]
