#!/usr/bin/env python3
"""Copies beside the wheel's libraries what they need and other machines may lack.

    bundle_libraries.py --patchelf PROGRAM --strip PROGRAM [--leave NAME]... [--own-run-time] FOLDER

The copies get names of their own (libcrypto.so.3 becomes libgmb-crypto.so.3), so that
neither they nor the process's own libraries are ever taken for each other, and keep their
state to themselves (tools/separate-symbols). So does libgmb.so itself, of which `gmb run`
may bring another. The file "order" names them all, each behind those that it needs.
Libraries that every Linux has are left out, and those that a process may have once
only: the C run time, and C++'s where objects of C++ go between libraries (PyTorch's).
Where none do, --own-run-time takes C++'s along: a program that exports one of its own
has the shared one use that in part, and std::call_once crashes between the two.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

SEPARATE_SYMBOLS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "separate-symbols"
SYSTEM = re.compile(r"(libc|libm|libpthread|libdl|librt|libresolv|libgcc_s)\.so|ld-linux|linux-vdso")
CXX_RUN_TIME = "libstdc++"


def needed(library, left):
    """Libraries that the loader finds for it: name to path, without the system's and those `left`."""
    alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    said = subprocess.run(
        ["ldd", library], check=True, capture_output=True, text=True, env=alone
    ).stdout
    found = {}
    for line in said.splitlines():
        name, _, path = line.strip().partition(" => ")
        name = name.split()[0]
        if SYSTEM.search(name) or name.split(".so")[0] in left or (not path and name.startswith("/")):
            continue
        if not path.startswith("/"):
            raise SystemExit(f"{library} needs {name}, which is not to be found")
        found[name] = pathlib.Path(path.split()[0])
    return found


def own_name(name):
    if name.startswith("libgmb."):
        return name.replace("libgmb.", "libgmb-client.", 1)
    return "libgmb-" + name.removeprefix("lib")


def in_order(folder):
    """The libraries of the folder, each behind those that it needs."""
    names = sorted(path.name for path in folder.iterdir() if ".so" in path.name)
    ordered = []

    def add(name):
        said = subprocess.run(
            ["readelf", "--dynamic", "--wide", folder / name],
            check=True, capture_output=True, text=True,
        ).stdout
        for other in re.findall(r"\(NEEDED\).*\[(.*)\]", said):
            if other in names and other not in ordered:
                add(other)
        if name not in ordered:
            ordered.append(name)

    for name in names:
        add(name)
    return ordered


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patchelf", required=True)
    parser.add_argument("--strip", required=True)
    parser.add_argument("--leave", action="append", default=[], metavar="NAME",
                        help="a library of the system's that is not copied: libssl")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--own-run-time", action="store_true",
                        help="take a copy of C++'s run time, too")
    options = parser.parse_args()
    folder = options.folder
    left = options.leave if options.own_run_time else [*options.leave, CXX_RUN_TIME]

    for link in [path for path in folder.iterdir() if path.is_symlink()]:
        link.resolve().rename(link)  # a wheel has no links: each would be a copy
    real = sorted(path for path in folder.iterdir() if ".so" in path.name)
    found = {}
    for library in real:
        found.update(needed(library, left))
    # libgmb_torch.so is opened by its path alone, and keeps its name.
    renamed = sorted({*found, *(path.name for path in real)} - {"libgmb_torch.so"})
    for name, path in {**found, **{path.name: path for path in real}}.items():
        to = folder / (own_name(name) if name in renamed else name)
        subprocess.run([options.strip, "--strip-unneeded", "-o", to, path], check=True)
        if path.parent == folder and path != to:
            path.unlink()
    needs = [part for name in renamed for part in ("--replace-needed", name, own_name(name))]
    for library in folder.iterdir():
        # One after the other: patchelf 0.14 takes the names of the first for the path.
        subprocess.run([options.patchelf, *needs, library], check=True)
        subprocess.run([options.patchelf, "--set-rpath", "$ORIGIN", library], check=True)
    for name in renamed:
        library = folder / own_name(name)
        subprocess.run([options.patchelf, "--set-soname", library.name, library], check=True)
    subprocess.run([sys.executable, "-B", SEPARATE_SYMBOLS, *folder.iterdir()], check=True)
    (folder / "order").write_text("".join(f"{name}\n" for name in in_order(folder)))


main()
