#!/usr/bin/env python3
"""Checks which folder includes what, and from where third-party headers come.

    tools/check_layering.py [--root DIR]

Prints one line a fault, as FILE:LINE: what is wrong. Exits 1 if there is any.
Files that grow too long are named as warnings and do not fail.
"""

import argparse
import pathlib
import re
import sys

# Folder -> what it may include of ours: whole folders ("ipc/") or single
# headers. The longest matching folder rules. The public headers of the client
# are written "gmb/...", the generated ones "gmb/v1/...": see owner() below.
CLIENT_GROUND = ["device/mapper.h", "device/devices.h", "device/handle.h",
                 "device/stream_fences.h", "base/", "ipc/", "proto/"]
# Every folder of the library may use these parts of it.
CLIENT_FLOOR = ["client/fork_guard.h", "client/no_throw.h", "client/wire.h"]
ARROWS = {
    "proto": ["proto/", "base/"],
    "quota": ["quota/"],
    "base": ["base/"],
    "ipc": ["ipc/", "base/"],
    "device": ["device/", "base/"],
    # The parts of the driver's binary interface that are used, in words of our
    # own.
    "device/cuda/abi": ["device/cuda/abi/"],
    # Keeps fds, and knows nothing of what they are: no device, no proto.
    "keeper": ["keeper/", "ipc/", "base/"],
    # The messages of it and its broker, and the side that asks.
    "keeper/wire": ["keeper/wire/", "base/status_macros.h"],
    "keeper/link": ["keeper/link/", "keeper/wire/", "ipc/", "base/"],
    "broker": ["broker/", "base/", "quota/", "device/", "ipc/", "keeper/link/", "keeper/wire/",
               "proto/"],
    # Decides, and touches nothing: values of the device, the gate's word, ids.
    "broker/machine": ["broker/machine/", "broker/hostpool/", "broker/tenant_name.h", "quota/",
                       "device/allocator.h", "device/copy_job.h", "device/handle.h",
                       "device/hostpool/host_extent.h", "ipc/gate_control.h", "ipc/gate_page.h",
                       "ipc/gate_watch.h", "ipc/random.h", "ipc/seqpacket.h", "base/",
                       "proto/"],
    # Finds whose value of a field is in force: itself a value, as the machine
    # is.
    "broker/declared": ["broker/declared/", "broker/machine/tenant.h", "quota/"],
    # Answers strangers, and knows nothing of what the broker does.
    "broker/http": ["broker/http/", "ipc/", "base/"],
    # Reads reports and events, and changes nothing.
    "broker/metrics": ["broker/metrics/", "broker/core/", "broker/report/", "broker/http/",
                       "quota/units.h", "base/", "proto/"],
    # Puts down what was counted, day by day.
    "broker/usage": ["broker/usage/", "broker/metrics/event_counts.h", "broker/core/clock.h",
                     "broker/core/wall_timer.h", "broker/store/database.h",
                     "broker/store/database_file.h", "broker/log/", "base/"],
    # Reads what the machine knows.
    "broker/report": ["broker/report/", "broker/machine/", "broker/hostpool/", "quota/",
                      "device/handle.h", "device/hostpool/host_pool.h",
                      "device/hostpool/pool_mapping.h", "proto/"],
    # The public classes, which put the rest together.
    "client": ["client/", *CLIENT_GROUND],
    "client/gate": ["client/gate/", "base/", "client/fork_guard.h", "ipc/"],
    "client/lease": ["client/lease/", *CLIENT_FLOOR, *CLIENT_GROUND],
    "client/session": ["client/session/", "client/gate/", "client/lease/", "client/include/",
                       *CLIENT_FLOOR, *CLIENT_GROUND],
    "client/heap": ["client/heap/", "client/session/", "client/include/", *CLIENT_FLOOR,
                    *CLIENT_GROUND],
    # The C interface is made of the C++ one. Its scopes are no objects, so it
    # calls the gate itself; its errors have the wire's names.
    "client/c": ["client/c/", "client/gate/", "client/session/automatic_gate.h",
                 "client/lease/range_hooks.h", "client/include/", "client/callback_turn.h",
                 "client/no_throw.h",
                 "base/status_macros.h", "proto/"],
    # It is in every process below `gmb run`: the C interface, and headers alone.
    "client/preload": ["client/preload/", "client/include/gmb/c_api.h",
                       "client/gate/bias_calls.h", "client/lease/range_hooks.h",
                       "device/cuda/abi/", "base/"],
    # The headers that a user's program sees. They need nothing else of ours.
    "client/include": ["client/include/"],
    # The command uses the library as its users do, with doors of its own: the
    # operator's greeting, where the sockets are, and what `gmb doctor` asks of the devices.
    "client/cli": ["client/cli/", "client/include/", "client/device_probe.h",
                   "client/session/broker_process.h", "client/session/operator_session.h",
                   "client/session/socket_dir.h",
                   "base/commit.h", "base/status_macros.h", "base/unique_fd.h",
                   "keeper/link/keeper_link.h",
                   "keeper/wire/messages.h", "keeper/wire/frame.h", "proto/"],
    # How things are said, and how they look, knows no command.
    "client/cli/text": ["client/cli/text/", "client/include/", "proto/"],
    "client/cli/views": ["client/cli/views/", "client/cli/text/", "client/include/", "proto/"],
    "client/cli/hold": ["client/cli/hold/", "client/cli/text/", "client/cli/context.h",
                        "client/cli/exit_code.h", "client/cli/tenant_identity.h",
                        "client/include/", "base/status_macros.h"],
    # torch calls the C interface alone, as a program in another language would.
    "client/python": ["client/python/", "client/include/gmb/c_api.h"],
    "tests": [""],
    "bench": [""],
}
# Nothing but these two includes from these two.
LEAVES = ("tests/", "bench/")
# A program of its own in another's folder: it uses that folder's parts, and only
# itself and the leaves include its own.
OWN_PROGRAMS = ("client/cli/demo/",)

# Third-party headers that one file, or one folder, hides from the rest. A name
# ends in "/" for a folder; elsewhere the file's name without its extension.
ONE_PLACE = {
    r"sqlite3\.h": ["broker/store/"],
    r"yaml-cpp/.*": ["broker/config/"],
    r"microhttpd\.h": ["broker/http/"],
    r"prometheus/.*": ["broker/metrics/"],
    r"spdlog/.*": ["broker/log/logging"],
    r"CLI/.*": ["broker/config/", "client/cli/"],
    r"nlohmann/.*": ["client/cli/"],
    r"device/cuda/abi/.*": ["device/cuda/", "client/preload/"],
    # The programs are built without the toolkit.
    r"cuda(_runtime|_runtime_api)?\.h": ["tests/", "bench/"],
}

# The policy and the machine are pure: they are told the time and never wait, log
# or read.
PURE = ("quota", "broker/machine", "broker/declared", "broker/report")
PURE_BANNED = re.compile(
    r"(thread|mutex|shared_mutex|condition_variable|future|stop_token|semaphore|ctime"
    r"|iostream|fstream|filesystem|random"
    r"|absl/synchronization/.*|absl/time/clock\.h|base/mutex\.h"
    r"|(unistd|pthread|time|sys/(?!types\.h).*)\.h)"
)
# The policy has no atomics either, and prints nothing but its last words.
QUOTA_BANNED = re.compile(r"(atomic|cstdio|sys/types\.h)")
LAST_WORDS = "quota/must_find.cc"
# <chrono> has the durations, which are fine; its clocks are not.
PURE_CLOCK = re.compile(r"\b(\w+_clock\b|absl::Now\b|GetCurrentTimeNanos\b)")
# Folders that keep to Abseil and the standard library.
ABSEIL_ONLY = {"quota"}

MAX_LINES = 400
SOURCES = {".h", ".cc", ".c"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"[a-z_0-9]+|(inttypes|stdint|stddef|limits|string|errno)\.h")


def owner(header):
    """The place in our tree that an include names, or None if it is not ours."""
    if header.startswith(("gmb/v1/", "gmb/journal/v1/")):
        return "proto/" + header
    if header.startswith("gmb/"):
        return "client/include/" + header
    if header.split("/")[0] in ARROWS:
        return header
    return None


def folder_of(path):
    """The rule that a file is under: the longest folder of ARROWS above it."""
    matches = [f for f in ARROWS if path.startswith(f + "/")]
    return max(matches, key=len, default=None)


def allowed(place, entries):
    return any(place.startswith(e) if e.endswith("/") or not e else place == e for e in entries)


def check_arrow(path, folder, header):
    place = owner(header)
    if place is None:
        return None
    if place.startswith(LEAVES) and not path.startswith(LEAVES):
        return f"nothing includes from {place.split('/')[0]}/"
    for program in OWN_PROGRAMS:
        if place.startswith(program) and not path.startswith((program, *LEAVES)):
            return f"{program} is a program of its own, {header} is not for {folder}"
    if not allowed(place, ARROWS[folder]):
        return f"{folder} may not include {header}"
    return None


def check_one_place(path, header):
    if path.startswith(LEAVES):
        return None
    stem = path.rsplit(".", 1)[0]
    for pattern, homes in ONE_PLACE.items():
        if re.fullmatch(pattern, header):
            at_home = any(path.startswith(h) if h.endswith("/") else stem == h for h in homes)
            return None if at_home else f"{header} is included in {', '.join(homes)} only"
    return None


def check_purity(path, folder, header):
    banned = folder in PURE and PURE_BANNED.fullmatch(header)
    prints = folder == "quota" and QUOTA_BANNED.fullmatch(header) and path != LAST_WORDS
    if banned or prints:
        return f"{folder} is pure and does without <{header}>"
    if folder in ABSEIL_ONLY and owner(header) is None:
        if not header.startswith("absl/") and not STANDARD.fullmatch(header):
            return f"{folder} keeps to Abseil and the standard library, not {header}"
    return None


def check_relative(header):
    if header.startswith(".") or "/../" in header:
        return f'write "{header}" from the top of the tree'
    return None


def check_file(root, path):
    """Yields (line, fault) of one file; path is relative to root."""
    folder = folder_of(path)
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        clock = PURE_CLOCK.search(line.split("//")[0]) if folder in PURE else None
        if clock:
            yield number, f"{folder} is told the time and reads no clock: {clock.group()}"
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(2)
        for fault in (check_relative(header), check_arrow(path, folder, header),
                      check_one_place(path, header), check_purity(path, folder, header)):
            if fault:
                yield number, fault


def sources(root):
    for folder in sorted({f.split("/")[0] for f in ARROWS}):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(root).as_posix()


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args(argv).root
    files = list(sources(root))
    faults = 0
    for path in files:
        for line, fault in check_file(root, path):
            print(f"{path}:{line}: {fault}")
            faults += 1
        length = len((root / path).read_bytes().splitlines())
        if length > MAX_LINES:
            print(f"{path}: warning: {length} lines, more than {MAX_LINES}: split it?")
    if not files:
        print(f"no sources under {root}")
        return 1
    print(f"layering: {len(files)} files, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
