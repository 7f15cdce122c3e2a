"""Trace files (README.md): what records or makes traces writes them, what replays them reads them."""

import gzip
import pathlib
import zlib

FIRST_LINE = "# gmb allocation trace 1"
MOST_STREAMS = 1024
MOST_BYTES = (1 << 64) - 1


class TraceError(Exception):
    """Says which file, which line, and what is wrong with it."""


def write(path, source, lines):
    """`source`: what it was recorded from, in one line. A path that ends in .gz is compressed."""
    path = pathlib.Path(path)
    text = "\n".join([FIRST_LINE, f"# source: {source}", *lines, ""]).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def _text(path):
    content = pathlib.Path(path).read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    return content.decode("utf-8")


def read(path):
    """(events, most live bytes, streams); an event is (bytes or None, block, stream)."""
    try:
        lines = _text(path).split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error
    if lines[0] != FIRST_LINE:
        raise TraceError(f'{path}: does not begin with "{FIRST_LINE}"')
    reader = _Reader()
    for number, line in enumerate(lines[1:], start=2):
        if not line or line.startswith("#"):
            continue
        try:
            reader.read([word for word in line.split(" ") if word])
        except _WrongLine as wrong:
            raise TraceError(f"{path}:{number}: {wrong}: {line}") from None
    if not reader.events:
        raise TraceError(f"{path}: has no events")
    return reader.events, reader.most, reader.streams


class _WrongLine(Exception):
    pass


def _number(word):
    digits = word.lstrip("0") or "0"
    plain = word.isascii() and word.isdigit() and len(digits) <= len(str(MOST_BYTES))
    if not plain or int(digits) > MOST_BYTES:
        raise _WrongLine("not understood")
    return int(digits)


class _Reader:
    def __init__(self):
        self.events, self.most, self.streams = [], 0, 1
        self._blocks, self._live, self._live_bytes = 0, {}, 0

    def read(self, words):
        if not 2 <= len(words) <= 3 or words[0] not in ("+", "-"):
            raise _WrongLine("not understood")
        number, stream = _number(words[1]), _number(words[2]) if len(words) == 3 else None
        if stream is not None and stream >= MOST_STREAMS:
            raise _WrongLine(f"streams are below {MOST_STREAMS}")
        if words[0] == "+":
            self._allocate(number, stream or 0)
        else:
            self._free(number, stream)
        self.streams = max(self.streams, self.events[-1][2] + 1)

    def _allocate(self, size, stream):
        if size > MOST_BYTES - self._live_bytes:
            raise _WrongLine("more is live than 64 bits can count")
        self.events.append((size, self._blocks, stream))
        self._live[self._blocks] = size, stream
        self._blocks += 1
        self._live_bytes += size
        self.most = max(self.most, self._live_bytes)

    def _free(self, block, stream):
        if block not in self._live:
            raise _WrongLine("no such block is live")
        size, its_stream = self._live.pop(block)
        self.events.append((None, block, its_stream if stream is None else stream))
        self._live_bytes -= size
