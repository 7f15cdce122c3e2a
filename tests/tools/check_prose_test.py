"""The check of prose must fail for a sentence without a subject and for a source that does not say its part."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_prose  # noqa: E402

OPENING = "// Grants leases.\n"
# In two parts, or this file would be at fault.
BARE = "Wh" + "at is left is granted."


class CheckProseTest(unittest.TestCase):
    def faults(self, name, text):
        """Each fault of a tree with this one file, up to its second colon."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            code = check_prose.main(["--root", folder])
        *faults, total = said.getvalue().splitlines()
        self.assertEqual(total, f"prose: 1 files, {len(faults)} faults")
        self.assertEqual(code, 1 if faults else 0)
        return [":".join(fault.split(":")[:2]) for fault in faults]

    def assert_fault_at(self, line, name, text):
        self.assertEqual(self.faults(name, text), [f"{name}:{line}"])

    def test_a_sentence_without_a_subject_is_named_wherever_it_begins(self):
        self.assert_fault_at(2, "quota/a.cc", f"{OPENING}// {BARE}\n")
        self.assert_fault_at(3, "quota/a.cc", f"{OPENING}// The rest waits.\n// {BARE}\n")
        self.assert_fault_at(2, "quota/a.cc", f"{OPENING}int a;  // of it. {BARE}\n")
        self.assert_fault_at(3, "quota/a.cc", f"{OPENING}// Its bytes, and\nint a;  // {BARE}\n")
        self.assert_fault_at(2, "quota/a.cc", f"{OPENING}// --- {BARE}\n")
        self.assert_fault_at(2, "quota/a.h", f"// (A lease.)\n// {BARE}\n")
        self.assert_fault_at(1, "proto/gmb/v1/a.proto", f"// {BARE}\n")
        self.assert_fault_at(1, "tools/a.py", f'"""{BARE}"""\n')
        self.assert_fault_at(2, "tools/a", f"#!/bin/sh\n# {BARE}\n")
        self.assert_fault_at(2, "tests/CMakeLists.txt", f"# A test.\n# {BARE}\n")

    def test_all_words_count(self):
        for word in ("at", "o", "om", "ose", "oever", "atever", "ichever"):
            self.assert_fault_at(1, "quota/a.h", f"// Wh{word} waits is told.\n")

    def test_of_two_that_follow_each_other_both_are_named(self):
        self.assertEqual(self.faults("a.md", f"{BARE}\n{BARE}\n"), ["a.md:1", "a.md:2"])

    def test_pages_are_read_by_paragraphs_items_and_rows(self):
        self.assert_fault_at(2, "docs/a.md", f"# Title\n{BARE}\n")
        self.assert_fault_at(2, "docs/a.md", f"A list\n* {BARE}\n")
        self.assert_fault_at(2, "docs/a.md", f"A list\n12. {BARE}\n")
        self.assert_fault_at(1, "docs/a.md", f"| lease | It ends. {BARE} |\n")

    def test_questions_and_titles_are_fine(self):
        self.assertEqual(self.faults("docs/a.md", f"# {BARE}\n\n| {BARE} |\n\n**{BARE}**\n"), [])
        self.assertEqual(self.faults("docs/a.md", "What is left,\nand of what size? It is shown.\n"), [])
        self.assertEqual(self.faults("docs/a.md", f"```\n{BARE}\n```\n"), [])

    def test_a_line_may_go_on_with_such_a_word(self):
        self.assertEqual(self.faults("docs/a.md", "The page says\nWhat is left, as its title.\n"), [])
        self.assertEqual(self.faults("quota/a.h", "// The lease, and what is left.\n// Whatsoever\n"), [])

    def test_a_string_is_no_comment(self):
        self.assertEqual(self.faults("quota/a.h", f'const char a[] = "{BARE}";\n'), [])

    def test_a_source_of_the_products_opens_with_its_part(self):
        self.assert_fault_at(1, "broker/core/a.cc", '#include "broker/core/a.h"\n')
        self.assert_fault_at(1, "client/a.cc", "// NOLINTBEGIN(misc)\nint a;\n")
        self.assert_fault_at(1, "client/a.cc", "")
        self.assertEqual(self.faults("client/a.cc", OPENING), [])
        self.assertEqual(self.faults("client/a.h", "#ifndef GMB_CLIENT_A_H_\n"), [])
        self.assertEqual(self.faults("tests/a_test.cc", '#include "a.h"\n'), [])

    def test_an_empty_tree_is_at_fault(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(check_prose.main(["--root", folder]), 1)


if __name__ == "__main__":
    unittest.main()
