"""Trace files in Python: read as heap_bench reads them, and refused alike."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys

import pytest
from trace_file import FIRST_LINE, TraceError, read, write

TRACES = pathlib.Path(__file__).resolve().parents[2] / "bench" / "traces"


def written(folder, text):
    file = folder / "x.trace"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def assert_refused(folder, text, what):
    file = written(folder, text)
    with pytest.raises(TraceError, match=re.escape(f"{file}{what}")):
        read(file)


def test_blocks_are_freed_in_any_order_and_need_not_be(tmp_path):
    file = written(tmp_path, f"{FIRST_LINE}\n# source: a test\n+ 100\n+ 200 3\n# a comment\n\n"
                             "+ 0\n- 1\n- 0 2\n+ 50")
    events, most, streams = read(file)
    assert events == [(100, 0, 0), (200, 1, 3), (0, 2, 0), (None, 1, 3), (None, 0, 2), (50, 3, 0)]
    assert most == 300
    assert streams == 4


@pytest.mark.parametrize("text", [
    "", "+ 100\n", "# gmb allocation trace 2\n+ 1\n", f"{FIRST_LINE}\r\n+ 1\r\n"])
def test_what_is_no_trace_is_refused(tmp_path, text):
    assert_refused(tmp_path, text, ": does not begin with")


def test_what_cannot_be_read_is_refused(tmp_path):
    assert_refused(tmp_path, FIRST_LINE.encode() + b"\n+ \xff\n", ": cannot be read: ")
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(TraceError, match="cannot be read"):
            read(path)


def test_a_trace_has_events(tmp_path):
    assert_refused(tmp_path, f"{FIRST_LINE}\n# source: nothing\n", ": has no events")


@pytest.mark.parametrize("line", [
    "+", "-", "* 4", "alloc 4", "+ 4 0 0", "+ x", "+ -4", "+ 1.5", "- -1", "+ " + "9" * 21, "+ 4 -1",
    "+ 4 x", "+ \u0664", " ", "+ " + "9" * 20, "+ +5", "+ 4\t", "+\t4", "+ 4 " + "9" * 20])
def test_a_wrong_line_is_named(tmp_path, line):
    assert_refused(tmp_path, f"{FIRST_LINE}\n+ 1\n{line}\n+ 2\n", f":3: not understood: {line}")


def test_streams_and_bytes_that_do_not_fit_are_refused(tmp_path):
    assert_refused(tmp_path, f"{FIRST_LINE}\n+ 4 1024\n", ":2: streams are below 1024: + 4 1024")
    assert_refused(tmp_path, f"{FIRST_LINE}\n+ {2**64 - 1}\n+ 1\n",
                   ":3: more is live than 64 bits can count: + 1")


def test_only_a_live_block_can_be_freed(tmp_path):
    assert_refused(tmp_path, f"{FIRST_LINE}\n- 0\n+ 1\n", ":2: no such block is live: - 0")
    assert_refused(tmp_path, f"{FIRST_LINE}\n+ 1\n- 0\n- 0\n", ":4: no such block is live: - 0")


def test_every_trace_of_the_repository_is_read():
    traces = sorted(TRACES.glob("*.trace.gz"))
    assert len(traces) >= 4
    for file in traces:
        events, most, streams = read(file)
        assert events and most and streams


def test_a_compressed_trace_is_read_to_its_end_or_refused(tmp_path):
    file = tmp_path / "x.trace.gz"
    write(file, "a test", ["+ 100", "- 0"])
    assert read(file)[0] == [(100, 0, 0), (None, 0, 0)]
    packed = file.read_bytes()
    for damaged in (packed[:-1], packed[:-20], packed[:12] + b"\xff" + packed[13:]):
        file.write_bytes(damaged)
        with pytest.raises(TraceError, match="cannot be read"):
            read(file)


# Figures name them: a change of one is a change of those.
MADE_UP = {
    "synthetic-decode.trace": "53c49159d3e1afc538b753b842b02c5bfaf52834b258aa9723312aef392465e5",
    "synthetic-images.trace": "62cca235fc02807777f38b80ef80fcf88ead0268454de638c011d55e191fea6c",
}


def test_the_made_up_traces_are_the_same_every_time(tmp_path):
    subprocess.run([sys.executable, "-B", TRACES / "make_synthetic.py", "--out", tmp_path], check=True)
    made = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in tmp_path.glob("*.trace")}
    assert made == MADE_UP


def test_a_replay_ends_at_a_wrong_file_before_it_measures(tmp_path):
    good = written(tmp_path, f"{FIRST_LINE}\n+ 1\n").rename(tmp_path / "good.trace")
    bad = written(tmp_path, f"{FIRST_LINE}\n+ 1\n- 1\n")
    # Files are read before torch is asked for anything: none is needed here.
    (tmp_path / "torch.py").touch()
    done = subprocess.run(
        [sys.executable, "-B", TRACES / "replay_torch.py", good, bad], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"{bad}:3: no such block is live: - 1\n"
