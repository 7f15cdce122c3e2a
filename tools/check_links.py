#!/usr/bin/env python3
"""Checks that links between the repository's pages lead somewhere.

    tools/check_links.py [--root DIR]

Each link of a Markdown file to a path must have that file or folder; one with a
#heading must have that heading on the page, named as GitHub names it. Links to
other sites are not followed. Prints one line a fault and exits 1 if there is any.
"""

import argparse
import pathlib
import re
import sys

FENCE = re.compile(r"^\s*```")
HEADING = re.compile(r"^#+ (.*)$")
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
LABEL = re.compile(r"\[([^\]]*)\]\([^)]*\)")
SITE = re.compile(r"^[a-z][a-z0-9+.-]*:")


def prose_lines(path):
    """The lines outside of fenced code, with their numbers."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchor(heading):
    """GitHub's name for it."""
    text = LABEL.sub(r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path):
    found, times = set(), {}
    for _, line in prose_lines(path):
        heading = HEADING.match(line)
        if heading:
            name = anchor(heading[1])
            before = times.get(name, 0)
            times[name] = before + 1
            found.add(f"{name}-{before}" if before else name)
    return found


def fault_of(page, link, known):
    """Says why it leads nowhere; None if it does not."""
    path, _, heading = link.partition("#")
    to = page.parent / path if path else page
    if not to.exists():
        return "leads to no file"
    if not heading or to.suffix != ".md":
        return None
    if to not in known:
        known[to] = anchors(to)
    return None if heading in known[to] else "leads to no heading of that page"


def pages(root):
    """Of the repository, not of what is built in it."""
    yield from sorted(root.glob("*.md"))
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and not folder.name.startswith((".", "build", "venv", "debian")):
            yield from sorted(folder.rglob("*.md"))


def check(root):
    faults, known = [], {}
    for page in pages(root):
        for number, line in prose_lines(page):
            for link in LINK.findall(CODE.sub("", line)):
                if not SITE.match(link) and (fault := fault_of(page, link, known)):
                    faults.append(f"{page.relative_to(root)}:{number}: {link} {fault}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[1])
    faults = check(parser.parse_args().root.resolve())
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
