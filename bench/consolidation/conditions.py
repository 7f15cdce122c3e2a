"""The conditions of a run of the figure."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass

from load.trace import Trace
from local_broker import Programs
from servers import Servers

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Conditions:
    device: str  # "cuda" or "host"
    size: str  # of the networks: "full" or "tiny"
    card_bytes: int  # the card that the models share; 0: not settled yet
    seconds: float  # of the trace
    trace: Trace
    programs: Programs
    out: pathlib.Path
    servers: Servers
    more_traces: tuple[Trace, ...] = ()  # replayed after the first one, of other seeds
    # Answers of another process of the same model are compared with those of the first.
    alike_again: bool = False

    @property
    def batches(self) -> list[int]:
        """All that the trace may ask for."""
        most = int(self.trace.header["max_batch"])
        return [1 << power for power in range(most.bit_length())]

    def server_environment(self) -> dict[str, str]:
        environment = {
            "OMP_NUM_THREADS": "1",
            # So that the same question has the same answer, to the last bit.
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            # JAX grows as the others do, and does not take three quarters at once.
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        if self.alike_again:
            # XLA chooses kernels by timing them, otherwise: not the same ones each time.
            given = os.environ.get("XLA_FLAGS", "")
            environment["XLA_FLAGS"] = f"{given} --xla_gpu_deterministic_ops=true".strip()
        return environment


def in_gib(nbytes: float) -> str:
    if nbytes >= GIB:
        return f"{nbytes / GIB:.2f} GiB"
    return f"{nbytes / MIB:.1f} MiB"
