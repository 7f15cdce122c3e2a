"""ONNX Runtime's CUDA provider as it comes, idle between requests."""

import sys

import numpy
import onnxruntime

from gate_requests import serve
from onnxruntime_models import CUDA, LAYERS, WIDTH, layers_model, opened

onnxruntime.preload_dlls()  # CUDA's libraries where wheels have them
session = opened(layers_model(), options={"arena_extend_strategy": "kSameAsRequested"})
if session.get_providers()[0] != CUDA:
    sys.exit(f"the CUDA provider is not used: {session.get_providers()}")
x = numpy.random.default_rng(5).standard_normal((16, WIDTH)).astype(numpy.float32)


def answer():
    return session.run(None, {"h0": x})[0].tobytes()


serve(answer, f"{LAYERS * 4 * WIDTH**2 >> 20} MiB of weights")
