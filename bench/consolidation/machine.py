"""Which machine it is, and what its driver says."""

from __future__ import annotations

import pathlib
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
    """The bytes in use as the device's driver says, contexts and all."""
    if conditions.device == "host":
        return "host memory"
    return f"device memory used, of: {_nvidia_smi('memory.used,memory.total')}"


def memory_used() -> int | None:
    """Of the first GPU, as its driver says; None where nobody says it."""
    said = _nvidia_smi("memory.used").splitlines()
    words = said[0].split() if said else []
    return int(words[0]) << 20 if words and words[0].isdigit() else None


def memory_available() -> int:
    """Host memory that processes can still have: the machine's, and the control group's."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    found = int(fields["MemAvailable"].split()[0]) * 1024
    group = pathlib.Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return found
    if limit == "max":
        return found
    return min(found, int(limit) - used + int(stat.get("inactive_file", 0)))


def machine(conditions: Conditions) -> dict[str, str]:
    found = {"cpu": platform.processor() or platform.machine(), "kernel": platform.release()}
    if conditions.device == "cuda":
        found["gpu"] = _nvidia_smi("name,driver_version")
    return found
