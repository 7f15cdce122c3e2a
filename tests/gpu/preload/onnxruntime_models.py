"""Models for ONNX Runtime, and its sessions on the CUDA and the CPU provider."""

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
WIDTH, LAYERS = 4096, 8


def made(nodes, inputs, outputs, weights=(), kind=TensorProto.FLOAT):
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(n, kind, s) for n, s in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


def picture_model():
    """Convolutions, as an image server has them."""
    generator = numpy.random.default_rng(3)
    nodes, weights, name, channels = [], [], "x", 3
    for i, wider in enumerate((32, 64, 128)):
        w = generator.standard_normal((wider, channels, 3, 3)).astype(numpy.float32)
        weights.append((f"w{i}", w / numpy.sqrt(9 * channels).astype(numpy.float32)))
        nodes += [helper.make_node("Conv", [name, f"w{i}"], [f"c{i}"], pads=[1] * 4,
                                   strides=[2, 2]),
                  helper.make_node("Relu", [f"c{i}"], [f"r{i}"])]
        name, channels = f"r{i}", wider
    nodes.append(helper.make_node("GlobalAveragePool", [name], ["y"]))
    return made(nodes, [("x", ["n", 3, "h", "w"])], [("y", ["n", channels, 1, 1])], weights)


def layers_model():
    """Layers of 64 MiB of weights each."""
    generator = numpy.random.default_rng(4)
    w = generator.standard_normal((WIDTH, WIDTH), dtype=numpy.float32) / WIDTH**0.5
    nodes = [helper.make_node(kind, *names) for i in range(LAYERS) for kind, names in (
        ("MatMul", ([f"h{i}", f"w{i}"], [f"m{i}"])), ("Tanh", ([f"m{i}"], [f"h{i + 1}"])))]
    weights = [(f"w{i}", numpy.roll(w, i, axis=0)) for i in range(LAYERS)]
    return made(nodes, [("h0", ["rows", WIDTH])], [(f"h{LAYERS}", ["rows", WIDTH])], weights)


def square_model():
    return made([helper.make_node("Mul", ["x", "x"], ["y"])], [("x", ["n"])], [("y", ["n"])])


def filling_model():
    """Takes as much memory as its input says floats, filled by zeros, and says the largest."""
    nodes = [helper.make_node("ConstantOfShape", ["n"], ["zeros"]),
             helper.make_node("ReduceMax", ["zeros"], ["y"], keepdims=0)]
    return made(nodes, [("n", [1])], [("y", [])], kind=TensorProto.INT64)


def opened(model, provider=CUDA, options=None):
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level = 3
    chosen = [(CUDA, options or {})] if provider == CUDA else [CPU]
    return onnxruntime.InferenceSession(model, session_options, providers=chosen)


def bound(session):
    """A session of the layers, with 16 rows in and out kept on the device."""
    binding = session.io_binding()
    x = onnxruntime.OrtValue.ortvalue_from_numpy(
        numpy.zeros((16, WIDTH), dtype=numpy.float32), "cuda", 0)
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type((16, WIDTH), numpy.float32, "cuda", 0)
    binding.bind_ortvalue_input("h0", x)
    binding.bind_ortvalue_output(f"h{LAYERS}", y)
    return binding, x, y
