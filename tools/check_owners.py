#!/usr/bin/env python3
"""Checks who owns the state of the broker's machine, and who reacts to what.

    tools/check_owners.py [--root DIR] [--table]

A part of the state is changed by the class that its Owned<> names: the compiler
sees to that. This sees to the rest: that every field of the state has an owner
or is const, that owners call downwards alone, that a fact has few reactors, and
that no class has too many methods: none of broker/machine and client/session, and
none elsewhere but those that had more before, which may not grow. Prints one line a fault and exits 1 if there
is any; with --table, each field with its owner and the files that change it.
"""

import argparse
import pathlib
import re
import sys

MOST_METHODS = 25
MOST_REACTORS = 3
MACHINE = "broker/machine"
COUNTED = (MACHINE, "client/session")
PRODUCT = ("base", "broker", "client", "device", "ipc", "keeper", "quota")
# Classes elsewhere that have more: a class that loses some is listed with what it has.
LARGER = {
    "broker/core/core.h": {"Core": 44},
    "client/heap/arena.h": {"Arena": 29},
    "client/heap/heap_core.h": {"HeapCore": 27},
    "keeper/server.h": {"Server": 43},
    "quota/engine_state.h": {"Engine": 48},
    "quota/ledger.h": {"Ledger": 30},
}
# Structs whose fields are state, and where they are.
STATE = {"State": "state.h", "Session": "session.h", "Lease": "lease.h", "Pool": "pool.h"}

COMMENT = re.compile(r"//[^\n]*")
CLASS = re.compile(r"^(?:class|struct)\s+(\w+)(?:\s+final)?(?:\s*:[^{;]*)?\s*\{", re.M)
OWNED = re.compile(r"Owned<\s*(.+?),\s*(\w+)>\s+(\w+);", re.S)
INCLUDE = re.compile(r'^#include "broker/machine/(\w+)\.h"', re.M)
METHOD = re.compile(r"(?:^|[\s*&~>])(~?\w+)\s*\(")
NOT_METHODS = {"if", "for", "while", "switch", "return", "sizeof", "decltype", "function"}


def body_at(text, start):
    """From an opening brace to the one that closes it."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start + 1:i]
    return text[start + 1:]


def classes(text):
    text = COMMENT.sub("", text)
    for match in CLASS.finditer(text):
        yield match.group(1), body_at(text, match.end() - 1)


def statements(body):
    """The declarations of a class, without what is inside of them."""
    flat, depth, parens = "", 0, 0
    for char in body:
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                flat += ";"
        elif depth == 0:
            parens += {"(": 1, ")": -1}.get(char, 0)
            flat += char
    return [s.strip() for s in flat.split(";") if s.strip()]


def methods(name, body):
    found = []
    for statement in statements(body):
        statement = re.sub(r"^(public|private|protected):\s*", "", statement)
        statement = re.sub(r"\[\[\w+\]\]|ABSL_\w+(\([^()]*\))?", "", statement).strip()
        if statement.startswith(("using", "friend", "struct", "class", "enum", "static constexpr")):
            continue
        if "= delete" in statement or "= default" in statement:
            continue
        match = METHOD.search(statement)
        # A field of function type, or one that is made with arguments, is none.
        if not match or match.group(1) in NOT_METHODS or "<" in statement[:match.start(1)].split(
                "(")[0] and statement.count("(") == 0:
            continue
        if match.group(1) not in (name, "~" + name):
            found.append(match.group(1))
    return found


def owners_in_order(machine):
    return re.findall(r"^class (\w+);", (machine / "owners.h").read_text(), re.M)


def check_methods(root, faults):
    seen = set()
    for folder in PRODUCT:
        for header in sorted((root / folder).rglob("*.h")):
            path = header.relative_to(root).as_posix()
            counted = any(path.startswith(one + "/") for one in COUNTED)
            larger = {} if counted else LARGER.get(path, {})
            for name, body in classes(header.read_text()):
                count, most = len(methods(name, body)), larger.get(name, MOST_METHODS)
                if count > most:
                    faults.append(f"{path}: {name} has {count} methods, more than {most}")
                if name in larger:
                    seen.add((path, name))
                    if count < most:
                        faults.append(f"{path}: {name} has {count} methods and is listed with {most}")
    for path, names in LARGER.items():
        for name in names:
            if (path, name) not in seen:
                faults.append(f"{path}: {name} is listed and not there")


def header_of(machine, owner):
    for header in machine.glob("*.h"):
        if re.search(rf"^class {owner} \{{", header.read_text(), re.M):
            return header
    return None


def check_arrows(machine, owners, faults):
    rank = {}
    for i, owner in enumerate(owners):
        header = header_of(machine, owner)
        if header is None:
            faults.append(f"{MACHINE}/owners.h: {owner} is defined nowhere")
        else:
            rank[header.stem] = i
    for i, owner in enumerate(owners):
        files = [f for f in machine.glob("*.cc")
                 if re.search(rf"^\w[^\n/]*\b{owner}::\w+\(", f.read_text(), re.M)]
        files += [f for f in [header_of(machine, owner)] if f]
        for file in files:
            for included in INCLUDE.findall(file.read_text()):
                if rank.get(included, -1) > i:
                    faults.append(f"{MACHINE}/{file.name}: {owner} includes {included}.h, "
                                  "which is above it: queue a fact")


def owned_fields(machine):
    for struct, header in STATE.items():
        for name, body in classes((machine / header).read_text()):
            if name != struct:
                continue
            for match in OWNED.finditer(body):
                yield struct, match.group(3), match.group(2)


def check_fields(machine, owners, faults):
    for struct, header in STATE.items():
        for name, body in classes((machine / header).read_text()):
            if name != struct:
                continue
            for statement in statements(body):
                if "(" in statement or statement.startswith(("const ", "static ", "struct ")):
                    continue
                match = OWNED.match(statement + ";")
                if match is None:
                    faults.append(f"{MACHINE}/{header}: {struct}: nobody owns: {statement}")
                elif match.group(2) not in owners:
                    faults.append(f"{MACHINE}/{header}: {match.group(2)} is no owner")


def check_facts(machine, faults):
    text = (machine / "settle.cc").read_text()
    start = text.index("::React(const Fact& fact")
    page = COMMENT.sub("", body_at(text, text.index("{", start)))
    for branch in re.split(r"get_if<", page)[1:]:
        fact = branch[:branch.index(">")]
        reactors = set(re.findall(r"\b(\w+_)\.On\w+\(|\b(\w+_)\.\w+\(", branch))
        names = {a or b for a, b in reactors} - {"state_"}
        if len(names) > MOST_REACTORS:
            faults.append(f"{MACHINE}/settle.cc: {fact} has {len(names)} reactors")
        if not names:
            faults.append(f"{MACHINE}/settle.cc: nobody reacts to {fact}")
    for fact in re.findall(r"^struct (\w+) \{", (machine / "fact.h").read_text(), re.M):
        if f"get_if<{fact}>" not in page:
            faults.append(f"{MACHINE}/settle.cc: nobody reacts to {fact}")


def print_table(machine):
    for struct, field, owner in owned_fields(machine):
        where = rf"state_\.{field}" if struct == "State" else rf"(?<!state_)[.>]{field}"
        writers = [f.name for f in sorted(machine.glob("*.cc"))
                   if re.search(rf"{where}\.Edit\(", f.read_text())]
        print(f"{struct + '::' + field:28} {owner:14} {' '.join(writers)}")


def main(args):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).parent.parent, type=pathlib.Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args(args)
    machine = options.root / MACHINE
    faults = []
    owners = owners_in_order(machine)
    check_methods(options.root, faults)
    check_arrows(machine, owners, faults)
    check_fields(machine, owners, faults)
    check_facts(machine, faults)
    if options.table:
        print_table(machine)
    for fault in faults:
        print(fault)
    print(f"owners: {len(owners)} owners, {len(list(owned_fields(machine)))} parts of the state, "
          f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
