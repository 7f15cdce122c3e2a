"""Shared by the programs of tests/gpu/run-preload: checks, and the broker's books.

GMB_COMMAND is the gmb command with the broker's socket directory, GMB_TENANT the
tenant; without them (a native run) nothing is asked of a broker.
"""

import json
import os
import shlex
import subprocess
import sys
import time

MIB = 1 << 20
GIB = 1 << 30

_failed = 0


def asked(*words):
    """The answer of the gmb command."""
    # The command is no program to be run on leases.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    command = shlex.split(os.environ["GMB_COMMAND"]) + ["--output", "json", *words]
    said = subprocess.run(command, env=environment, check=True, capture_output=True)
    return json.loads(said.stdout)


def leased():
    """Bytes that the tenant has leased, as the broker says it."""
    leases = asked("lease", "list", "--tenant", os.environ["GMB_TENANT"])["leases"]
    return sum(lease["bytes"] for lease in leases)


def await_leased(holds, seconds=10):
    """The figure once it is as wanted, or the last one seen."""
    end = time.monotonic() + seconds
    now = leased()
    while not holds(now) and time.monotonic() < end:
        time.sleep(0.05)
        now = leased()
    return now


def check(what, ok, detail=""):
    global _failed
    _failed += 0 if ok else 1
    print(f"{'PASS' if ok else 'FAIL'}  {what}{'  (' + str(detail) + ')' if detail else ''}",
          flush=True)
    return ok


def skip(what, detail=""):
    print(f"SKIP  {what}{'  (' + str(detail) + ')' if detail else ''}", flush=True)


def note(text):
    print(f"      {text}", flush=True)


def attempt(what, function):
    """A step that may raise: that is a failure of the step alone."""
    try:
        return function()
    except Exception as error:  # pylint: disable=broad-except
        first = str(error).strip().split("\n")[0][:200]
        check(what, False, f"{type(error).__name__}: {first}")
        return None


def finish():
    sys.exit(min(_failed, 100))


def mib(count):
    return f"{count / MIB:.0f} MiB"
