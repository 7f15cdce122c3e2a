"""ONNX Runtime's time for a run on the CUDA provider, as one JSON line for each size."""

import json
import sys
import time

import numpy
import onnxruntime

from onnxruntime_models import CUDA, bound, layers_model, opened, picture_model

SECONDS = float(sys.argv[1])


def measured(size, step):
    for _ in range(10):
        step()
    times, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    print(json.dumps({"size": size, "seconds": sorted(times)[len(times) // 2]}), flush=True)


onnxruntime.preload_dlls()
for name, options in (("layers", {}), ("layers, CUDA graph", {"enable_cuda_graph": "1"})):
    session = opened(layers_model(), options=options)
    if session.get_providers()[0] != CUDA:
        sys.exit("the CUDA provider is not used")
    binding, _, _ = bound(session)
    measured(f"onnxruntime {name}", lambda: session.run_with_iobinding(binding))
pictures = opened(picture_model())
for size in (256, 512, 1024):
    x = numpy.zeros((4, 3, size, size), dtype=numpy.float32)
    measured(f"onnxruntime pictures {size}, from host memory",
             lambda: pictures.run(None, {"x": x}))
