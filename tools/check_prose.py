#!/usr/bin/env python3
"""Checks how comments and pages begin.

    tools/check_prose.py [--root DIR]

No sentence of a comment or of Markdown begins with a clause without a head
("What is left is ...", "Who waits is told ..."); a question may. And each .cc
of the products opens with a comment that says its part. Prints one line a
fault, as FILE:LINE: what is wrong. Exits 1 if there is any.
"""

import argparse
import pathlib
import re
import sys

PRODUCTS = ("base", "broker", "client", "device", "ipc", "keeper", "proto", "quota")
FOLDERS = (*PRODUCTS, ".ci", "bench", "cmake", "debian", "deploy", "docs", "examples", "tests", "tools")
SLASHES = re.compile(r"(?:^|\s)//+!?<? ?(.*)")
# A docstring's first line counts as a comment.
HASHES = re.compile(r'(?:^|\s)#+(?!!) ?(.*)|^\s*"""(.*)')
TEXT = re.compile(r"()(.*)")
KINDS = {**dict.fromkeys((".c", ".cc", ".cu", ".h", ".proto"), SLASHES),
         **dict.fromkeys((".bash", ".cmake", ".py", ".yaml"), HASHES), ".md": TEXT}
# Each begins a text of its own; a heading is none.
MARK = re.compile(r"\s*(?:[-*>]|---|\d+\.)\s+")
TITLE = re.compile(r"\s*(?:#|```)")
HEADLESS = re.compile(r"""(?:^|(?<=[.!?:])["')*`]*\s)(Wh(?:at|o|om|ose|oever|atever|ichever)\b[^.!?]*"""
                      r"""(?:[.!?](?![\s"')*`]|$)[^.!?]*)*[.!?]?)""")


def kind_of(path):
    if path.suffix in KINDS or path.name == "CMakeLists.txt":
        return KINDS.get(path.suffix, HASHES)
    if path.suffix:
        return None
    with path.open("rb") as file:
        return HASHES if file.read(2) == b"#!" else None


def texts(lines, kind):
    """Yields each comment or paragraph, as pairs of a line's number and its words."""
    block, in_code = [], False
    for number, line in enumerate(lines, 1):
        if kind is TEXT and line.lstrip().startswith("```"):
            in_code = not in_code
        match = None if in_code or (kind is TEXT and TITLE.match(line)) else kind.search(line)
        words = next((group for group in match.groups() if group), "") if match else ""
        goes_on = words.strip() and (kind is TEXT or not line[:match.start()].strip())
        if block and (not goes_on or MARK.match(words)):
            yield block
            block = []
        if words.strip():
            block.append((number, MARK.sub("", words, count=1).strip()))
    if block:
        yield block


def headless(lines, kind):
    """Yields the line and the first words of each sentence that begins so."""
    for block in texts(lines, kind):
        text = " ".join(words for _, words in block)
        for match in HEADLESS.finditer(text):
            if match.group(1).endswith("?"):
                continue
            begin = 0
            for number, words in block:
                begin += len(words) + 1
                if match.start(1) < begin:
                    break
            yield number, " ".join(match.group(1).split()[:4])


def sources(root):
    for path in sorted([*root.glob("*.md"), *(p for f in FOLDERS for p in (root / f).rglob("*"))]):
        if path.is_file() and "corpus" not in path.parts and kind_of(path) is not None:
            yield path


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args(argv).root
    files, faults = list(sources(root)), 0
    for path in files:
        name = path.relative_to(root).as_posix()
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, words in headless(lines, kind_of(path)):
            print(f"{name}:{number}: name the subject: \"{words} ...\"")
            faults += 1
        if path.suffix == ".cc" and name.split("/")[0] in PRODUCTS:
            if not lines or not re.match(r"// (?!NOLINT)", lines[0]):
                print(f"{name}:1: open with a comment that says its part in the life of a lease")
                faults += 1
    if not files:
        print(f"no sources under {root}")
        return 1
    print(f"prose: {len(files)} files, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
