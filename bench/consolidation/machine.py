"""Which machine it is, and what its driver says."""

from __future__ import annotations

import platform
import subprocess

from conditions import Conditions


def _nvidia_smi(what: str) -> str:
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"no nvidia-smi: {error}"
    return done.stdout.strip()


def device_memory(conditions: Conditions) -> str:
    """What the device's driver says, contexts and all."""
    if conditions.device == "host":
        return "host memory"
    return f"device memory used, of: {_nvidia_smi('memory.used,memory.total')}"


def machine(conditions: Conditions) -> dict[str, str]:
    found = {"cpu": platform.processor() or platform.machine(), "kernel": platform.release()}
    if conditions.device == "cuda":
        found["gpu"] = _nvidia_smi("name,driver_version")
    return found
