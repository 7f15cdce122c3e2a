#!/usr/bin/env python3
"""A model behind HTTP in one of several frameworks, which knows nothing of gmb.

The protocol is that of examples/model_servers; it begins as with --wait-for-load there.
"""

from __future__ import annotations

import argparse
import pathlib
import signal
import sys
import threading

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parents[1] / "examples"))

from model_servers.http_front import Front  # noqa: E402
from model_servers.model import Model  # noqa: E402
from model_servers.worker import Worker  # noqa: E402
from program_kinds import ALL, LLAMA, ONNXRUNTIME  # noqa: E402


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True)
    parser.add_argument("--kind", required=True, choices=ALL)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--wait-for-load", action="store_true", required=True)
    return parser.parse_args()


def make_model(kind: str, seed: int) -> Model:
    if kind == "jax":
        from jax_model import JaxModel

        return JaxModel(seed)
    if kind == "cupy":
        from cupy_model import CupyModel

        return CupyModel(seed)
    if kind == LLAMA:
        from llama_cpp_model import LlamaModel

        return LlamaModel(seed)
    if kind == ONNXRUNTIME:
        from onnxruntime_model import OnnxModel

        return OnnxModel(seed)
    from model_servers.torch_memory import PlainMemory
    from model_servers.torch_model import TorchModel

    return TorchModel("encoder", "half", seed, PlainMemory())


def main() -> None:
    options = parse()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    model = make_model(options.kind, options.seed)
    worker = Worker(model)
    try:
        with Front(0, options.name, model, worker) as front:
            serving = threading.Thread(target=front.serve_forever, daemon=True)
            serving.start()
            worker.call(model.warm)
            print(f"listening on 127.0.0.1:{front.server_port}", flush=True)
            while not ended.wait(0.2):  # another thread may have got the signal
                pass
            front.shutdown()
            front.unload()
    finally:
        worker.stop()


if __name__ == "__main__":
    main()
