"""Headers of safetensors files: 8 bytes little-endian length, JSON, bytes.

A file comes from anywhere: nothing in it is believed before it is checked.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any, NoReturn

# As the reference implementation has it.
MOST_HEADER_BYTES = 100_000_000
_MOST_DIMENSIONS = 64
_MOST_ELEMENTS = 2**63 - 1

DTYPE_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E5M2": 1,
    "F8_E4M3": 1,
    "F8_E8M0": 1,
    "U16": 2,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "U32": 4,
    "I32": 4,
    "F32": 4,
    "U64": 8,
    "I64": 8,
    "F64": 8,
    "C64": 8,
}


class SafetensorsError(ValueError):
    """Not a safetensors file, a truncated one, or one that contradicts itself."""


@dataclass(frozen=True)
class Entry:
    """A tensor of a file; `begin` is where it is in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    nbytes: int


@dataclass(frozen=True)
class Header:
    raw: bytes
    entries: tuple[Entry, ...]  # in the order of their bytes


def read_header(fd: int, path: str) -> Header:
    """Of the file that is open there. `path` is for messages."""

    def bad(what: str) -> NoReturn:
        raise SafetensorsError(f"gmb: {path}: {what}")

    size = os.fstat(fd).st_size
    prefix = os.pread(fd, 8, 0)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or length < 2 or length > MOST_HEADER_BYTES:
        bad("not a safetensors file")
    if length > size - 8:
        bad(f"truncated: its header has {length} bytes, and the file {size}")
    raw = os.pread(fd, length, 8)
    if len(raw) != length:
        bad("truncated while it was read")
    try:
        content = json.loads(raw, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        bad(f"not a safetensors file: its header is no JSON ({error})")
    if not isinstance(content, dict):
        bad("not a safetensors file: its header is no object")
    content.pop("__metadata__", None)
    start = 8 + length
    entries = []
    for name, value in content.items():
        problem = _problem(value, size - start)
        if problem:
            bad(f"tensor {name!r}: {problem}")
        begin, end = value["data_offsets"]
        entries.append(
            Entry(name, value["dtype"], tuple(value["shape"]), start + begin, end - begin)
        )
    entries.sort(key=lambda entry: (entry.begin, entry.nbytes))
    at = start
    for entry in entries:
        if entry.begin != at:
            bad(f"tensor {entry.name!r}: its bytes overlap others, or there is a gap before them")
        at += entry.nbytes
    if at != size:
        bad(f"its tensors end at byte {at}, and the file at {size}")
    return Header(raw, tuple(entries))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice")
    return made


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST_ELEMENTS


def _problem(value: object, data_bytes: int) -> str:
    """The fault of an entry of the header; empty: none."""
    if not isinstance(value, dict):
        return "is no object"
    dtype, shape, offsets = (value.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        return f"its dtype is not known: {dtype!r:.40}"
    if (
        not isinstance(shape, list)
        or len(shape) > _MOST_DIMENSIONS
        or not all(_is_count(count) for count in shape)
    ):
        return "its shape is none"
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(_is_count(offset) for offset in offsets)
    ):
        return "its data_offsets are none"
    begin, end = offsets
    if begin > end or end > data_bytes:
        return f"its bytes {begin} to {end} are not in the file (is it truncated?)"
    if math.prod(shape) * DTYPE_BYTES[dtype] != end - begin:
        return f"{end - begin} bytes do not make its shape and dtype"
    return ""
