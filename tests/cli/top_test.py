"""`gmb top` in a pseudo terminal of its own, before a real gmbd."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from local_broker import Broker, Programs  # noqa: E402

PATIENCE = 120
TENANTS = {"chat": {"guarantee": "32MiB"}, "batch": {}}
SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Terminal:
    """A terminal of some size with gmb top in it: what is on its screen now."""

    def __init__(self, command, columns, rows, **environment):
        self.columns, self.rows = columns, rows
        self.lines = [" " * columns] * rows
        self.alternate = False
        self.others = []  # sequences that nobody expected
        self.row = self.column = 0
        self._rest = ""
        self.fd, slave = pty.openpty()
        self._set_size(columns, rows)
        self.before = termios.tcgetattr(slave)
        # A session of its own, whose terminal this is: Ctrl-C and sizes come as signals.
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **environment},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave = slave

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)
        os.close(self.slave)

    def _set_size(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines = [" " * columns] * rows
        self._set_size(columns, rows)

    def press(self, keys):
        os.write(self.fd, keys.encode())

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.lines)

    def wait_for(self, holds):
        """Reads on until the screen is such. `holds`: a pattern, or a question."""
        asked = (lambda: re.search(holds, self.text)) if isinstance(holds, str) else holds
        deadline = time.monotonic() + PATIENCE
        while not asked():
            assert time.monotonic() < deadline, f"no {holds} in\n{self.text}"
            if select.select([self.fd], [], [], 0.1)[0]:
                self._take(os.read(self.fd, 65536).decode(errors="replace"))
        return self

    def end(self):
        """Its exit code, with all that it wrote read."""
        deadline = time.monotonic() + PATIENCE
        while True:
            ended = self.process.poll() is not None
            while select.select([self.fd], [], [], 0)[0]:
                self._take(os.read(self.fd, 65536).decode(errors="replace"))
            if ended:
                return self.process.returncode
            assert time.monotonic() < deadline, "does not end"
            time.sleep(0.02)  # between two looks

    def _take(self, text):
        text = self._rest + text
        self._rest = ""
        while text:
            if text[0] != "\x1b":
                self._put(text[0])
                text = text[1:]
            elif found := SEQUENCE.match(text):
                self._obey(*found.groups())
                text = text[found.end():]
            elif len(text) < 16:
                self._rest, text = text, ""
            else:
                self.others.append(text[:16])
                text = text[1:]

    def _put(self, character):
        if character == "\n":
            self.row += 1
        elif character == "\r":
            self.column = 0
        elif self.row < self.rows and self.column < self.columns:
            line = self.lines[self.row]
            self.lines[self.row] = line[:self.column] + character + line[self.column + 1:]
            self.column += 1

    def _obey(self, private, numbers, letter):
        if private:
            if numbers == "1049":
                self.alternate = letter == "h"
        elif letter == "H":
            row, column = (int(number) for number in (numbers or "1;1").split(";"))
            self.row, self.column = row - 1, column - 1
        elif letter == "K":
            if self.row < self.rows:
                self.lines[self.row] = self.lines[self.row][:self.column].ljust(self.columns)
        elif letter == "J":
            kept = 0 if numbers == "2" else self.row
            self.lines[kept:] = [" " * self.columns] * (self.rows - kept)
        elif letter != "m":
            self.others.append(letter)


@pytest.fixture
def broker():
    with Broker(Programs(os.environ["GMB_PROGRAMS"]), device="host", pool="128MiB", host_pool="64MiB",
                tenants=TENANTS) as running:
        yield running


def top(broker, columns=80, rows=24, *arguments):
    return Terminal(broker.command("top", "--delay", "100ms", *arguments), columns, rows)


@pytest.mark.parametrize("columns,title", [(80, "TENANT +STATE +RESID"), (200, "TENANT +PROC +STATE +RESID")])
def test_it_shows_a_broker_live_in_narrow_and_wide_terminals(broker, columns, title):
    with top(broker, columns) as terminal:
        terminal.wait_for(title).wait_for("no processes")
        assert terminal.alternate
        holder = subprocess.Popen(broker.command("hold", "--tenant", "chat", "--bytes", "16MiB"),
                                  stdout=subprocess.DEVNULL)
        try:
            terminal.wait_for(r"chat +(1 +)?1 active +16\.0M")
            terminal.wait_for(r"chat +gmb .*off +16\.0M")
        finally:
            holder.send_signal(signal.SIGINT)
            holder.wait()
        terminal.wait_for("no processes")
        terminal.press("q")
        assert terminal.end() == 0
        assert not terminal.alternate, "what was there before is there again"
        assert termios.tcgetattr(terminal.slave) == terminal.before
        assert not terminal.others


def test_a_move_of_memory_is_told(broker):
    with top(broker) as terminal, \
            subprocess.Popen(broker.command("hold", "--tenant", "batch", "--bytes", "32MiB", "--idle"),
                             stdout=subprocess.DEVNULL) as holder:
        terminal.wait_for(r"batch +idle \d+s +32\.0M")
        broker.run("reclaim", "batch")
        terminal.wait_for(r"evicted +batch session \d+  32\.0M").wait_for(r"1 parked|1 closed")
        holder.send_signal(signal.SIGINT)


def test_keys_ask_sort_and_filter(broker):
    with top(broker) as terminal:
        terminal.wait_for("by bytes")
        terminal.press("N")
        terminal.wait_for("by name").wait_for("(?s)batch.*chat")
        terminal.press("R")
        terminal.wait_for("(?s)chat.*batch")
        terminal.press("/")
        terminal.wait_for("tenants with this")
        terminal.press("cha\r")
        terminal.wait_for(lambda: "chat" in terminal.text and "batch" not in terminal.text)
        terminal.press("h")
        terminal.wait_for("any key leaves it")
        terminal.press("\x1b[B")
        terminal.wait_for("TENANT")
        terminal.press("\x03")
        assert terminal.end() == 0


def test_a_terminal_of_another_size_is_drawn_anew(broker):
    with top(broker) as terminal:
        terminal.wait_for("TENANT +STATE")
        terminal.resize(200, 50)
        terminal.wait_for("TENANT +PROC +STATE").wait_for(lambda: "q quit" in terminal.lines[-1])


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(broker):
    with top(broker) as terminal:
        terminal.wait_for("TENANT")
        terminal.press("\x1a")
        terminal.wait_for(lambda: not terminal.alternate)
        os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(lambda: terminal.alternate).wait_for("TENANT")


def test_it_goes_on_trying_when_the_broker_is_gone_and_finds_the_next(broker):
    with top(broker) as terminal:
        terminal.wait_for("batch")
        broker._process.send_signal(signal.SIGKILL)
        broker._process.wait()
        terminal.wait_for("no answer for .*, still trying").wait_for("batch")
        with broker._log.open("wb") as log:
            broker._process = subprocess.Popen(broker._command, stdout=log, stderr=subprocess.STDOUT)
        terminal.wait_for("nobody waits")


def test_it_begins_before_a_broker_does_and_ends_beside_one_that_hangs(broker):
    with Terminal([broker.command()[0], "top", "--socket-dir", "/nonexistent"], 80, 24) as terminal:
        terminal.wait_for("still trying: no broker answers in /nonexistent")
        terminal.press("q")
        assert terminal.end() == 0
    broker._process.send_signal(signal.SIGSTOP)
    try:
        with top(broker) as terminal:
            terminal.wait_for("gmb top")
            start = time.monotonic()
            terminal.press("q")
            assert terminal.end() == 0
            assert time.monotonic() - start < 8, "does not wait for an answer"
    finally:
        broker._process.send_signal(signal.SIGCONT)


def test_without_a_terminal_it_is_one_look_as_text(broker):
    said = broker.run("top")
    assert said.returncode == 0
    assert "\x1b" not in said.stdout
    assert re.search("TENANT +PROC", said.stdout) and "chat" in said.stdout
    look = broker.ask("top")
    assert [tenant["name"] for tenant in look["tenants"]] == ["batch", "chat"]
    assert look["sessions"] == [] and look["status"]["pools"]
    assert broker.run("top", "--sort", "size").returncode == 2
