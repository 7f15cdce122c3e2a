"""Headers of safetensors files, how tensors lie in a lease, and files that are none."""

import json
import os

import pytest

import gmb
from gmb import _safetensors
from gmb._shared_files import ALIGNMENT, Source


def raw_file(path, header, data=b""):
    """A file with the header that it is given, as bytes or to be made JSON."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    return path


def write(path, tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)}, in their order."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        data += content
    return raw_file(path, header, data)


def contents(source):
    """The contents of a lease that is filled from it, and gaps as they were."""
    image = bytearray(b"\xee" * source.nbytes)
    with memoryview(image) as view:
        source.read_into(view, 0)
    return image


def test_tensors_are_read_to_aligned_places(tmp_path):
    tensors = {
        "a": ("U8", (3,), b"abc"),
        "b": ("BF16", (2, 4), bytes(range(16))),
        "empty": ("F32", (0, 7), b""),
        "scalar": ("F64", (), bytes(range(100, 108))),
        "long": ("U8", (1024,), os.urandom(1024)),
        "next": ("I32", (64,), os.urandom(256)),
    }
    with Source(write(tmp_path / "f", tensors, {"format": "pt"})) as source:
        image = contents(source)
        assert [tensor.name for tensor in source.tensors] == list(tensors)
        for tensor in source.tensors:
            dtype, shape, content = tensors[tensor.name]
            assert (tensor.dtype, tensor.shape) == (dtype, shape)
            assert tensor.nbytes == 0 or tensor.offset % ALIGNMENT == 0
            assert image[tensor.offset : tensor.offset + tensor.nbytes] == content
        assert source.nbytes == len(image)


def test_any_piece_of_the_lease_can_be_read(tmp_path):
    tensors = {f"t{i}": ("U8", (997,), os.urandom(997)) for i in range(20)}
    with Source(write(tmp_path / "f", tensors)) as source:
        image = contents(source)
        for begin in range(0, source.nbytes, 333):
            piece = bytearray(b"\xee" * min(500, source.nbytes - begin))
            with memoryview(piece) as view:
                source.read_into(view, begin)
            assert piece == image[begin : begin + len(piece)]


def test_several_files_are_one_lease(tmp_path):
    files = [
        write(tmp_path / "1", {"a": ("U8", (2,), b"aa")}),
        write(tmp_path / "2", {"b": ("U8", (2,), b"bb")}),
    ]
    with Source(files) as source:
        image = contents(source)
        found = {t.name: image[t.offset : t.offset + 2] for t in source.tensors}
        assert found == {"a": b"aa", "b": b"bb"}
        name = source.shared_name("llm", "GPU-1")
    with Source(files[::-1]) as source:  # as somebody else names them
        assert contents(source) == image
        assert source.shared_name("llm", "GPU-1") == name
    with pytest.raises(gmb.SafetensorsError, match="two of the files"):
        Source([files[0], files[0]])
    with pytest.raises(ValueError, match="no file"):
        Source([])


def test_a_name_says_what_is_in_it(tmp_path):
    def name(tensors, device="GPU-1", given="llm"):
        with Source(write(tmp_path / "f", tensors)) as source:
            return source.shared_name(given, device)

    large, huge = bytes(5000), bytes(50000)
    first = name({"a": ("U8", (5000,), large)})
    assert first.startswith("llm@") and len(first) == 4 + 16
    assert name({"a": ("U8", (5000,), large)}) == first
    others = {
        name({"b": ("U8", (5000,), large)}),
        name({"a": ("I8", (5000,), large)}),
        name({"a": ("U8", (50, 100), large)}),
        name({"a": ("U8", (4999,), large[1:])}),
        *(
            name({"a": ("U8", (50000,), huge[:at] + b"x" + huge[at + 1 :])})
            for at in (0, 25000, 49999)
        ),
        *(
            name({"a": ("U8", (4096,), huge[:at] + b"x" + huge[at + 1 : 4096])})
            for at in (0, 1000, 4095)
        ),
        name({"a": ("U8", (50000,), huge)}),
        name({"a": ("U8", (4096,), huge[:4096])}),
        name({"a": ("U8", (5000,), large)}, device="GPU-2"),
    }
    assert len(others | {first}) == 14


@pytest.mark.parametrize("given", ["", "x" * 112, "new\nline", "\u00e9"])
def test_names_that_are_none_are_refused(tmp_path, given):
    with Source(write(tmp_path / "f", {"a": ("U8", (1,), b"a")})) as source:
        with pytest.raises(ValueError, match="printable"):
            source.shared_name(given, "")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Source(tmp_path / "nothing")
    with pytest.raises(OSError):
        Source(tmp_path)


def entry(dtype="U8", shape=(4,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        bytes(8),
        b"a plain text that is no such thing",
        (2**63).to_bytes(8, "little") + b"{}",
        (_safetensors.MOST_HEADER_BYTES + 1).to_bytes(8, "little") + b"{}",
    ],
)
def test_what_is_no_safetensors_file_is_refused(tmp_path, content):
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(gmb.SafetensorsError, match="not a safetensors file"):
        Source(path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{nonsense}",
        b'{"a": NaN}',
        b'{"a": ' + b"[" * 100000,
        b"\xff\xfe{}",
        b'{"a": {}, "a": {}}',
        b'{"a": ' + b"9" * 10000 + b"}",
    ],
)
def test_a_header_that_is_no_object_is_refused(tmp_path, header):
    with pytest.raises(gmb.SafetensorsError, match="not a safetensors file"):
        Source(raw_file(tmp_path / "f", header))


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ({"a": 3}, "no object"),
        ({"a": {}}, "dtype"),
        ({"a": entry(dtype="X9")}, "dtype"),
        ({"a": entry(dtype=["U8"])}, "dtype"),
        ({"a": entry(shape=4)}, "shape"),
        ({"a": entry(shape=[-4])}, "shape"),
        ({"a": entry(shape=[True, 4])}, "shape"),
        ({"a": entry(shape=[4.0])}, "shape"),
        ({"a": entry(shape=[2**64])}, "shape"),
        ({"a": entry(shape=[1] * 65)}, "shape"),
        ({"a": entry(shape=[2**62, 2**62, 0, 2**62])}, "do not make"),
        ({"a": entry(shape=[5])}, "do not make"),
        ({"a": entry(dtype="F32")}, "do not make"),
        ({"a": entry(offsets=[0])}, "data_offsets"),
        ({"a": entry(offsets=[0, "4"])}, "data_offsets"),
        ({"a": entry(offsets=[-4, 0])}, "data_offsets"),
        ({"a": entry(offsets=[4, 0])}, "not in the file"),
        ({"a": entry(offsets=[0, 2**62])}, "not in the file"),
        ({"a": entry(), "b": entry()}, "overlap"),
        ({"a": entry(), "b": entry(offsets=[2, 6])}, "overlap"),
        ({"a": entry(), "b": entry(shape=[3], offsets=[5, 8])}, "gap"),
        ({"a": entry()}, "end at byte"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(tmp_path, header, what):
    path = raw_file(tmp_path / "f", header, bytes(8))
    with pytest.raises(gmb.SafetensorsError, match=what) as caught:
        Source(path)
    assert str(path) in str(caught.value)


def test_every_truncation_is_refused(tmp_path):
    whole = write(tmp_path / "f", {"a": ("U8", (40,), bytes(40))}).read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(gmb.SafetensorsError):
            Source(tmp_path / "cut")
    (tmp_path / "long").write_bytes(whole + b"x")
    with pytest.raises(gmb.SafetensorsError, match="end at byte"):
        Source(tmp_path / "long")


def test_a_file_that_shrinks_meanwhile_is_told(tmp_path):
    path = write(tmp_path / "f", {"a": ("U8", (4096,), bytes(4096))})
    with Source(path) as source:
        os.truncate(path, 1000)
        with pytest.raises(gmb.SafetensorsError, match="truncated while"):
            contents(source)


def test_of_a_large_tensor_every_stretch_is_sampled(tmp_path):
    path = write(tmp_path / "f", {"a": ("U8", (1,), b"a")})
    nbytes = 200 << 20
    raw_file(path, {"a": entry(shape=[nbytes], offsets=[0, nbytes])})
    start = path.stat().st_size
    os.truncate(path, start + nbytes)  # of holes
    names = set()
    for at in (None, 0, 64 << 20, 128 << 20, 192 << 20, 100 << 20, nbytes - 1):
        if at is not None:
            with path.open("r+b") as file:
                file.seek(start + at)
                file.write(b"x")
        with Source(path) as source:
            names.add(source.shared_name("llm", "GPU-1"))
    assert len(names) == 7


def test_a_file_that_is_rewritten_meanwhile_is_told(tmp_path):
    path = write(tmp_path / "f", {"a": ("U8", (4096,), bytes(4096))})
    os.utime(path, ns=(0, 0))
    with Source(path) as source:
        contents(source)
        source.check_unchanged()
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"x")
        with pytest.raises(gmb.SafetensorsError, match="changed while"):
            source.check_unchanged()


def test_no_file_stays_open(tmp_path):
    good = write(tmp_path / "f", {"a": ("U8", (1,), b"a")})
    before = os.listdir("/proc/self/fd")
    with Source(good):
        pass
    with pytest.raises(gmb.SafetensorsError):
        Source([good, good])
    assert os.listdir("/proc/self/fd") == before
