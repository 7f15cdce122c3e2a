"""The check of links must fail for a page or a heading that is not there, and pass for the repository."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_links  # noqa: E402


class CheckLinksTest(unittest.TestCase):
    def faults(self, text, name="docs/a.md"):
        """Those of a tree of a README and this page."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "build" / "docs").mkdir(parents=True)
            (root / "build" / "b.md").write_text("[gone](gone.md)\n")
            (root / "README.md").write_text(
                "# One\n## `gmb run`: [how](docs/a.md), it is\n## Again\n## Again\n```\n# Code\n```\n")
            (root / name).write_text(text)
            return check_links.check(root)

    def assert_fault(self, text, ending):
        faults = self.faults(text)
        self.assertEqual(len(faults), 1, faults)
        self.assertTrue(faults[0].endswith(ending), faults)

    def test_links_that_lead_somewhere_are_fine(self):
        self.assertEqual(self.faults("[a](../README.md) [b](../README.md#one) [c](#here)\n# Here\n"), [])
        self.assertEqual(self.faults("[a](../README.md#gmb-run-how-it-is) [b](..)\n"), [])
        self.assertEqual(self.faults("[a](../README.md#again) [b](../README.md#again-1)\n"), [])
        self.assertEqual(self.faults("[a](https://example.org/x#y) [b](mailto:a@example.org)\n"), [])

    def test_a_file_that_is_not_there_is_named_with_its_line(self):
        self.assertEqual(self.faults("Text.\n\n[a](b.md)\n"), ["docs/a.md:3: b.md leads to no file"])

    def test_titles_and_brackets_belong_to_no_name(self):
        self.assertEqual(self.faults('[a](../README.md "the first page") [b](<../README.md#one>)\n'), [])
        self.assert_fault('[a](b.md "the second page")\n', "b.md leads to no file")

    def test_a_heading_that_is_not_there_is_named(self):
        self.assert_fault("[a](../README.md#two)\n", "README.md#two leads to no heading of that page")
        self.assert_fault("[a](../README.md#again-2)\n", "leads to no heading of that page")
        self.assert_fault("[a](#there)\n# Here\n", "#there leads to no heading of that page")
        self.assert_fault("[a](../README.md#code)\n", "leads to no heading of that page")

    def test_code_has_no_links(self):
        self.assertEqual(self.faults("`[a](b.md)`\n```\n[a](b.md)\n```\n"), [])

    def test_the_repository_has_none_that_lead_nowhere(self):
        self.assertEqual(check_links.check(ROOT), [])


if __name__ == "__main__":
    unittest.main()
