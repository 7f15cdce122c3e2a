"""Which servers are run: the example's model servers, or programs that know nothing of gmb."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

from model_servers.kinds import KINDS
from model_servers.model_server import server_command
from program_kinds import USUAL

_PROGRAM = pathlib.Path(__file__).resolve().parent / "program_server.py"
# As short as the example's scopes: a program that asks nothing of the GPU for so long lends.
_PARK_AFTER = "50ms"

# The words of `gmb run` for a tenant, before the program.
Launcher = Callable[[str], list[str]]


@dataclass(frozen=True)
class Servers:
    """Their kinds take turns."""

    kinds: tuple[str, ...]
    unchanged: bool  # under `gmb run`, where the others use gmb.torch

    def kind_of(self, number: int) -> str:
        return self.kinds[number % len(self.kinds)]

    def command(self, name: str, kind: str, *arguments: str) -> list[str]:
        if not self.unchanged:
            return server_command(name, kind, *arguments)
        return [sys.executable, "-B", str(_PROGRAM), "--name", name, "--kind", kind, *arguments]


MODEL_SERVERS = Servers(tuple(KINDS), unchanged=False)
PROGRAMS = Servers(USUAL, unchanged=True)


def servers_of(options: argparse.Namespace) -> Servers:
    """Of the flags --servers and --kinds."""
    if options.servers != "programs":
        return MODEL_SERVERS
    return PROGRAMS if options.kinds is None else Servers(options.kinds, unchanged=True)


def launcher(gmb: Callable[..., list[str]]) -> Launcher:
    """`gmb`: the command with its arguments. The program gets this process's library path."""
    path = os.environ.get("LD_LIBRARY_PATH", "")

    def words(tenant: str) -> list[str]:
        run = gmb("run", "--quiet", "--tenant", tenant, "--park-after", _PARK_AFTER, "--")
        return [*run, "env", f"LD_LIBRARY_PATH={path}"]

    return words
