"""The encoder of onnxruntime_model.py as an ONNX model, its weights in a file of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

FILE = "weights"  # the name by which the model knows it
_HALF = np.dtype(np.float16).itemsize


@dataclass(frozen=True)
class Shape:
    layers: int = 12
    width: int = 2048
    heads: int = 16
    words: int = 32768
    tokens: int = 96  # of each text


class _Encoder:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.weights: list[TensorProto] = []
        self.exponents: list[tuple[int, int, int]] = []  # of the file: begin, end, which
        self._length = 0
        width = shape.width
        for name, value in (("ones", 1.0), ("zeros", 0.0)):
            self.constants.append(
                helper.make_tensor(name, TensorProto.FLOAT16, [width], [value] * width)
            )
        for name, sizes in (("split", [0, 0, shape.heads, -1]), ("joined", [0, 0, width])):
            self.constants.append(helper.make_tensor(name, TensorProto.INT64, [len(sizes)], sizes))
        self.constants.append(helper.make_tensor("first", TensorProto.INT64, [], [0]))

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """The name of what it makes."""
        made = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [made], **attributes))
        return made

    def matrix(self, height: int, width: int) -> str:
        """Values of about the root of 1/height: a random sign and mantissa, one exponent."""
        name, size = f"w{len(self.weights)}", height * width
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT16, dims=[height, width])
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": FILE, "offset": self._length * _HALF, "length": size * _HALF}
        for key, value in place.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        self.weights.append(tensor)
        self.exponents.append((self._length, self._length + size, -(height.bit_length() // 2) - 1))
        self._length += size
        return name

    def product(self, x: str, height: int, width: int) -> str:
        return self.node("MatMul", x, self.matrix(height, width))

    def layer(self, x: str) -> str:
        width = self.shape.width
        query, key, value = (
            self.node("Reshape", self.product(x, width, width), "split") for _ in range(3)
        )
        query, value = (self.node("Transpose", y, perm=[0, 2, 1, 3]) for y in (query, value))
        key = self.node("Transpose", key, perm=[0, 2, 3, 1])
        looks = self.node("Softmax", self.node("MatMul", query, key), axis=-1)
        seen = self.node("Transpose", self.node("MatMul", looks, value), perm=[0, 2, 1, 3])
        seen = self.product(self.node("Reshape", seen, "joined"), width, width)
        x = self.normal(self.node("Add", x, seen))
        wide = self.node("Relu", self.product(x, width, 4 * width))
        return self.normal(self.node("Add", x, self.product(wide, 4 * width, width)))

    def normal(self, x: str) -> str:
        return self.node("LayerNormalization", x, "ones", "zeros", axis=-1)

    def file(self, seed: int) -> npt.NDArray[np.uint16]:
        random = np.random.Generator(np.random.SFC64(seed))
        eights = random.integers(0, 1 << 64, -(-self._length // 4), dtype=np.uint64)
        bits = eights.view(np.uint16)[: self._length]
        bits &= np.uint16(0x83FF)  # of a float16, the sign and the mantissa
        for begin, end, exponent in self.exponents:
            bits[begin:end] |= np.uint16((15 + exponent) << 10)
        return bits


def _value(name: str, kind: int, *sizes: str | int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, sizes)


def encoder(shape: Shape, seed: int) -> tuple[bytes, npt.NDArray[np.uint16]]:
    """The model and its weights. Words of texts in; out, for each text, its first word's place."""
    made = _Encoder(shape)
    x = made.node("Gather", made.matrix(shape.words, shape.width), "words")
    x = made.normal(x)
    for _ in range(shape.layers):
        x = made.layer(x)
    texts = made.node("Gather", x, "first", axis=1)
    made.nodes.append(helper.make_node("Cast", [texts], ["texts"], to=TensorProto.FLOAT))
    graph = helper.make_graph(
        made.nodes,
        "encoder",
        [_value("words", TensorProto.INT64, "batch", shape.tokens)],
        [_value("texts", TensorProto.FLOAT, "batch", shape.width)],
        [*made.constants, *made.weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), made.file(seed)
