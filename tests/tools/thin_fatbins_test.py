#!/usr/bin/env python3
"""tools/thin-fatbins on libraries made here, and tools/pack-wheels on wheels of them."""

import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
PTX, MACHINE_CODE, OTHER = 1, 2, 8


def entry(kind, architecture, code, header=64):
    code = code.ljust(-len(code) % 8 + len(code), b"\0")
    begin = struct.pack("<HHIQIIHHI", kind, 0x101, header, len(code), 0, 0, 8, 1, architecture)
    return begin.ljust(header, b"h") + code


def fatbin(*entries, room=0):
    """`room`: zeros behind them, as the tool leaves them."""
    whole = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(whole)) + whole + bytes(room)


def library(section, name=b".nv_fatbin"):
    """An ELF file of nothing but this section and the names of sections."""
    names = b"\0.shstrtab\0" + name + b"\0"
    names_at, begin = 64, 64 + len(names)
    table = begin + len(section) + 16
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, table, 0,
                         64, 0, 0, 64, 3, 1)

    def row(name_at, kind, at, size):
        return struct.pack("<IIQQQQIIQQ", name_at, kind, 0, 0, at, size, 0, 0, 1, 0)

    return (header + names + section + b"e" * 16 + row(0, 0, 0, 0)
            + row(1, 3, names_at, len(names)) + row(11, 1, begin, len(section)))


class ThinFatbins(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def thin(self, whole, wanted=0):
        path = self.folder / "lib.so"
        path.write_bytes(whole)
        done = subprocess.run([TOOLS / "thin-fatbins", "--architecture", "90", path],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, wanted, done.stderr)
        return path.read_bytes(), done.stdout + done.stderr

    def test_the_entries_of_the_gpu_move_to_the_front_as_they_were(self):
        old, new = entry(MACHINE_CODE, 80, b"old" * 50), entry(MACHINE_CODE, 90, b"new" * 70, 112)
        text, other = entry(PTX, 90, b"text" * 9), entry(OTHER, 0, b"other")
        newer = entry(MACHINE_CODE, 120, b"newer")
        before = fatbin(old, new, text, other, newer) + bytes(8) + fatbin(old, new)
        after = (fatbin(new, other, room=len(old + text + newer)) + bytes(8)
                 + fatbin(new, room=len(old)))
        thinned, said = self.thin(library(before))
        self.assertEqual(thinned, library(after))
        self.assertIn("in 2 fatbins, 0 of them with none", said)
        self.assertEqual(self.thin(thinned)[0], thinned)

    def test_older_code_of_the_same_major_architecture_runs_too(self):
        whole = library(fatbin(entry(MACHINE_CODE, 90, b"a"), entry(MACHINE_CODE, 91, b"b")))
        kept = library(fatbin(entry(MACHINE_CODE, 90, b"a"), room=72))
        self.assertEqual(self.thin(whole)[0], kept)

    def test_without_machine_code_ptx_stays(self):
        old, text = entry(MACHINE_CODE, 80, b"old"), entry(PTX, 80, b"text")
        thinned, _ = self.thin(library(fatbin(old, text)))
        self.assertEqual(thinned, library(fatbin(text, room=len(old))))

    def test_a_fatbin_is_never_left_empty(self):
        large, small = entry(MACHINE_CODE, 80, b"l" * 99), entry(MACHINE_CODE, 100, b"s")
        thinned, said = self.thin(library(fatbin(large, small)))
        self.assertEqual(thinned, library(fatbin(small, room=len(large))))
        self.assertIn("1 of them with none for sm_90", said)

    def test_what_has_no_gpu_code_stays_as_it_is(self):
        for whole in (b"no library" * 9, library(b"words" * 9, name=b".rodata")):
            self.assertEqual(self.thin(whole)[0], whole)

    def test_of_what_is_malformed_nothing_is_changed(self):
        good = fatbin(entry(MACHINE_CODE, 80, b"a"), entry(MACHINE_CODE, 90, b"b"))
        for bad in (b"x" * 40, good[:-8], good[:20], good.replace(b"\x40\0\0\0", b"\x10\0\0\0")):
            whole = library(good + bad)
            thinned, said = self.thin(whole, wanted=1)
            self.assertEqual(thinned, whole)
            self.assertIn("lib.so: ", said)


@unittest.skipUnless(shutil.which("xz"), "no xz here")
class PackWheels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        old, new = entry(MACHINE_CODE, 80, b"old" * 50), entry(MACHINE_CODE, 90, b"new")
        self.noise = random.Random(1).randbytes(5 << 19)
        with zipfile.ZipFile(self.folder / "a-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("a/lib.so", library(fatbin(old, new)))
            wheel.writestr("a/noise", self.noise)
            wheel.writestr("a/large", "not wanted")
            wheel.writestr("a-1.data/purelib/b.py", "c = 1")
        self.thinned = library(fatbin(new, room=len(old)))
        self.out, self.site = self.folder / "out", self.folder / "site"
        subprocess.run([TOOLS / "pack-wheels", "--architecture", "90", "--part-mib", "1",
                        "--leave-out", "*/large", self.out, *self.folder.glob("*.whl")],
                       check=True, capture_output=True)

    def join(self):
        return subprocess.run([sys.executable, self.out / "join", self.site],
                              capture_output=True, text=True)

    def test_the_parts_are_the_wheels_with_less_gpu_code(self):
        parts = sorted(self.out.glob("part-*"))
        self.assertEqual(len(parts), 3)
        self.assertLessEqual(max(part.stat().st_size for part in parts), 1 << 20)
        self.assertEqual(self.join().returncode, 0)
        files = {str(path.relative_to(self.site)): path.read_bytes()
                 for path in self.site.rglob("*") if path.is_file()}
        self.assertEqual(files, {"a/lib.so": self.thinned, "a/noise": self.noise,
                                 "b.py": b"c = 1"})

    def test_a_part_that_is_missing_or_another_is_named(self):
        part = self.out / "part-1"
        part.write_bytes(part.read_bytes()[:-1])
        self.assertIn("part-1 is not what was packed", self.join().stderr)
        part.unlink()
        self.assertIn("part-1 is missing", self.join().stderr)
        self.assertFalse(self.site.exists())


if __name__ == "__main__":
    unittest.main()
