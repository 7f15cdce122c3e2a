#!/usr/bin/env python3
"""Checks that docs/handover.md says what becomes of each part of the state.

    tools/check_restart.py [--root DIR] [--list]

The page has a section for each record of the broker's machine, and in it a row
for each field: how the next broker gets it, and what a client notices. Records
are found from the machine's State on, along the fields whose row says "parts".
Prints one line a fault and exits 1 if there is any: a field without a row, a
row without a field, a record without a section. With --list, each record that
is reached and its fields.
"""

import argparse
import pathlib
import re
import sys

PAGE = "docs/handover.md"
ROOTS = ("State",)
# Where records are, and templates that only hold another type.
PLACES = ("broker/machine/*.h", "broker/hostpool/*.h", "quota/engine_state.h", "quota/leases.h",
          "quota/waiters.h")
NO_RECORDS = {"owned.h", "owners.h"}
# A type whose fields lie behind a pointer.
BEHIND = {"quota::Engine": "Engine::State"}

KEPT = {"fd", "journaled"}  # so a record's parts have to be looked at one by one
ENDS = {"SQLite", "configured", "repeated", "derived", "dropped"}
FATES = KEPT | ENDS | {"parts"}

COMMENT = re.compile(r"//[^\n]*")
HEAD = re.compile(r"(?<!enum )\b(?:class|struct)\s+([\w:]+)(?:\s+final)?(?:\s*:(?!:)[^{;()]*)?\s*\{")
OWNED = re.compile(r"^Owned<\s*(.+?),\s*\w+>\s+(\w+)$", re.S)
FIELD = re.compile(r"^(.*[\s>&*])([A-Za-z_]\w*)$", re.S)
ARGUMENTS = re.compile(r"<[^<>]*>")
NO_FIELD = ("using", "friend", "typedef", "static", "enum", "struct", "class", "template", "explicit")
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$")
SECTION = re.compile(r"^### `([\w:]+)`")


def closing(text, start):
    """Where the brace that opens at `start` is closed."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def statements(body):
    """The declarations of a class, without what is inside of their braces."""
    flat, depth = "", 0
    for char in body:
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            flat += ";" if depth == 0 else ""
        elif depth == 0:
            flat += char
    for statement in flat.split(";"):
        statement = re.sub(r"\b(public|private|protected):", "", statement)
        yield " ".join(statement.split())


def without_arguments(kind):
    """The type without those of its templates: std::function<void(int)> is no function."""
    while ARGUMENTS.search(kind):
        kind = ARGUMENTS.sub("", kind)
    return kind


def fields(body):
    """Pairs of a type and a name."""
    # A field that is initialised by braces is split from its name by no
    # semicolon.
    body = re.sub(r"(\w)\s*\{[^{}]*\}\s*;", r"\1;", body)
    for statement in statements(body):
        declared = re.split(r"\s=(?:\s|$)", statement)[0].strip()
        declared = re.sub(r"\s*ABSL_\w+\([^()]*\)", "", declared)
        if not declared or declared.startswith(NO_FIELD) or "constexpr" in declared:
            continue
        owned = OWNED.match(declared)
        if owned:
            yield owned.group(1), owned.group(2)
            continue
        match = FIELD.match(declared)
        if match and "(" not in without_arguments(declared):
            yield match.group(1).strip(), match.group(2)


def records_of(text, inside=""):
    """{name: [(type, field)]} of all classes and structs, nested ones too."""
    found, at = {}, 0
    while match := HEAD.search(text, at):
        end = closing(text, match.end() - 1)
        name = inside + match.group(1)
        body = text[match.end():end]
        found[name] = list(fields(body))
        found.update(records_of(body, name + "::"))
        at = end
    return found


def all_records(root):
    found = {}
    for place in PLACES:
        for header in sorted(root.glob(place)):
            if header.name not in NO_RECORDS:
                found.update(records_of(COMMENT.sub("", header.read_text())))
    return found


def records_in(kind, scope, records):
    """The records that a type is made of."""
    for word in re.findall(r"[A-Za-z_][\w:]*", kind):
        if word in BEHIND:
            yield BEHIND[word]
            continue
        outer = scope
        while outer:
            if f"{outer}::{word}" in records:
                yield f"{outer}::{word}"
                break
            outer = outer.rpartition("::")[0]
        else:
            if word.removeprefix("quota::") in records:
                yield word.removeprefix("quota::")


def read_page(root):
    """{record: {field: (fate, how, notices)}}, and faults of the page."""
    sections, faults, rows = {}, [], None
    path = root / PAGE
    for line in path.read_text().splitlines() if path.is_file() else []:
        section = SECTION.match(line)
        if section or line.startswith("## "):
            rows = sections.setdefault(section.group(1), {}) if section else None
            continue
        row = ROW.match(line)
        if row is None or rows is None:
            if rows is not None and line.startswith("| `"):
                faults.append(f"{PAGE}: not a row of four: {line}")
            continue
        if row.group(1) in rows:
            faults.append(f"{PAGE}: two rows: {list(sections)[-1]}: {row.group(1)}")
        rows[row.group(1)] = tuple(cell.strip() for cell in row.groups()[1:])
    return sections, faults


def check_row(name, field, inner, row):
    fate, how, notices = row
    if fate not in FATES:
        return f'"{fate}" is none of {", ".join(sorted(FATES))}'
    if fate == "parts" and not inner:
        return 'it has no parts: say what becomes of it'
    if fate in KEPT and inner:
        return f'it is made of {", ".join(inner)}: write "parts", and a section for it'
    if fate in ("dropped", "repeated") and len(notices) < 3:
        return f"{fate}: what does a client notice?"
    if fate != "parts" and len(how) < 3:
        return "how?"
    return None


def walk(records, sections, faults):
    """The records that are reached, in order."""
    reached = list(ROOTS)
    for name in reached:
        if name not in records:
            faults.append(f"no such record: {name}")
            continue
        rows = sections.get(name)
        if rows is None:
            faults.append(f"{PAGE}: no section for the record {name}")
        for kind, field in records[name]:
            inner = sorted(set(records_in(kind, name, records)) - {name})
            row = (rows or {}).get(field)
            if row is None:
                if rows is not None:
                    faults.append(f"{PAGE}: {name}: no row for the field {field}")
                continue
            fault = check_row(name, field, inner, row)
            if fault:
                faults.append(f"{PAGE}: {name}: {field}: {fault}")
            if row[0] == "parts":
                reached += [each for each in inner if each not in reached]
        known = {field for _, field in records[name]}
        for field in rows or {}:
            if field not in known:
                faults.append(f"{PAGE}: {name}: a row for {field}, which is no field of it")
    for name in sections:
        if name not in reached:
            faults.append(f"{PAGE}: a section for {name}, which no row leads to")
    return reached


def main(args):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent,
                        type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(args)
    records = all_records(options.root)
    sections, faults = read_page(options.root)
    reached = walk(records, sections, faults)
    if options.list:
        for name in reached:
            for kind, field in records.get(name, []):
                inner = sorted(set(records_in(kind, name, records)) - {name})
                print(f"{name}::{field}: {kind} {inner or ''}")
    for fault in faults:
        print(fault)
    rows = sum(len(section) for section in sections.values())
    print(f"restart: {len(reached)} records, {rows} rows, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
