#!/usr/bin/env python3
"""One model behind HTTP, on memory of the broker or on plain device memory.

Prints `listening on 127.0.0.1:PORT` when it serves; ends with 0 on SIGTERM. The protocol
is in README.md.
"""

from __future__ import annotations

import argparse
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from model_servers.http_front import Front
from model_servers.kinds import KINDS
from model_servers.model import Model
from model_servers.worker import Worker


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="the model's, and the tenant's")
    parser.add_argument("--kind", required=True, choices=sorted(KINDS))
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument(
        "--memory",
        choices=("gmb", "plain"),
        default="gmb",
        help="plain: torch's own allocator, also for a static split [gmb]",
    )
    parser.add_argument("--socket-dir", help="the broker's [GMB_SOCKET_DIR, or /run/gmb]")
    parser.add_argument("--seed", type=int, default=1, help="of the weights [1]")
    parser.add_argument("--size", choices=("full", "tiny"), default="full", help="[full]")
    parser.add_argument("--port", type=int, default=0, help="0: any [0]")
    parser.add_argument(
        "--wait-for-load",
        action="store_true",
        help="make the CUDA context and load the kernels, and the weights at POST /load",
    )
    options = parser.parse_args()
    if options.device == "host" and options.memory == "plain":
        parser.error("--memory plain is for --device cuda")
    return options


def make_model(options: argparse.Namespace) -> Model:
    if options.device == "host":
        from model_servers.host_model import HostModel

        return HostModel(KINDS[options.kind].host, options.socket_dir, options.name, options.seed)
    from model_servers.torch_memory import GmbMemory, PlainMemory
    from model_servers.torch_model import TorchModel

    memory = (
        GmbMemory(options.socket_dir, options.name) if options.memory == "gmb" else PlainMemory()
    )
    return TorchModel(options.kind, options.size, options.seed, memory)


def main() -> None:
    options = parse()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    model = make_model(options)
    worker = Worker(model)
    try:
        with Front(options.port, options.name, model, worker) as front:
            serving = threading.Thread(target=front.serve_forever, daemon=True)
            serving.start()
            if options.wait_for_load:
                worker.call(model.warm)
            else:
                front.load(None)
            print(f"listening on 127.0.0.1:{front.server_port}", flush=True)
            # Without a timeout a signal that another thread got would not be seen: some of
            # torch's libraries have theirs take it.
            while not ended.wait(0.2):
                pass
            front.shutdown()
            front.unload()
    finally:
        worker.stop()


if __name__ == "__main__":
    main()
