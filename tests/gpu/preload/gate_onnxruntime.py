"""ONNX Runtime's CUDA provider as it comes, idle between requests."""

import numpy

from gate_requests import serve
from onnxruntime_models import LAYERS, WIDTH, layers_model, opened

session = opened(layers_model(), options={"arena_extend_strategy": "kSameAsRequested"})
x = numpy.random.default_rng(5).standard_normal((16, WIDTH)).astype(numpy.float32)


def answer():
    return session.run(None, {"h0": x})[0].tobytes()


serve(answer, f"{LAYERS * 4 * WIDTH**2 >> 20} MiB of weights")
