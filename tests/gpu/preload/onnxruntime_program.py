"""ONNX Runtime's CUDA provider as it comes, on a model of one matrix product."""

import sys

import numpy
import onnxruntime

from checks import attempt, check, finish, leased, mib, note, skip


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a protobuf message: bytes, text or a whole number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, rows, columns):
    shape = field(1, field(1, rows)) + field(1, field(1, columns))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(n):
    node = field(1, "a") + field(1, "b") + field(2, "c") + field(4, "MatMul")
    graph = (field(1, node) + field(2, "g") + field(11, tensor("a", n, n)) +
             field(11, tensor("b", n, n)) + field(12, tensor("c", n, n)))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def run():
    n = 4096
    session = onnxruntime.InferenceSession(model(n), providers=["CUDAExecutionProvider"])
    check("the CUDA provider is used", session.get_providers()[0] == "CUDAExecutionProvider",
          session.get_providers())
    generator = numpy.random.default_rng(7)
    a, b = (generator.standard_normal((n, n)).astype(numpy.float32) for _ in range(2))
    c = session.run(None, {"a": a, "b": b})[0]
    check("a matrix product is right", abs(c - a @ b).max() < 1.0)
    check("it is in leased memory", leased() >= 3 * a.nbytes, mib(leased()))


note(f"onnxruntime {onnxruntime.__version__}, {onnxruntime.get_available_providers()}")
if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
    skip("onnxruntime was built without its CUDA provider")
    sys.exit(0)
attempt("run", run)
finish()
