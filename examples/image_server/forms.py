"""The ways in which the image server can have its memory."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

from local_broker import Broker, Problem, end, need_packages
from local_server import Server
from story import call

HERE = pathlib.Path(__file__).resolve().parent
MIB, GIB = 1 << 20, 1 << 30
HOST_POOL, GPU_POOL = 64 * MIB, 12 * GIB
# Two CUDA contexts of processes that have no broker.
CONTEXTS = 3 * GIB // 2
TENANTS = {"server": {"limit": "100%"}, "neighbour": {"limit": "100%"}}


def of_device(device):
    if device not in ("host", "cuda:0"):
        raise Problem(f"--device is host or cuda:0, not {device}: CUDA_VISIBLE_DEVICES chooses "
                      "another GPU")
    need_packages("gmb")
    if device == "host":
        return [HostForm("its own cache", False), HostForm("under the broker", True)]
    need_packages("torch")
    return [PlainTorch(), TorchForm("PyTorch under gmb run", False),
            TorchForm("PyTorch with gmb.torch", True)]


class Neighbour:
    """A process that asks for memory and holds it. `got`, and what it `said`."""

    def __init__(self, command):
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True)
        began = time.monotonic()
        self.got = any("holding" in line for line in self._process.stdout)
        took = time.monotonic() - began
        self.said = f"gets it, in {took:.2f} s" if self.got else self._refusal()

    def _refusal(self):
        said = self._process.communicate()[1].strip().splitlines() or ["without a word"]
        return f"refused: {said[0].removeprefix('gmb: ').split(': bytes=')[0]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self._process)
        self._process.stderr.close()


class Stage:
    """A server of a form, and the memory that it shares."""

    def __init__(self, server):
        self._server = server

    def infer(self, rows):
        return call(self._server.port, "POST", "/infer", {"batch": rows})

    def empty_cache(self):
        call(self._server.port, "POST", "/empty_cache")


class BrokerStage(Stage):
    def __init__(self, server, broker, pool_bytes, wait):
        super().__init__(server)
        self._broker, self.pool_bytes, self._wait = broker, pool_bytes, wait

    def held_bytes(self):
        return self._broker.tenant("server")["resident_bytes"]

    def free_bytes(self):
        return self._broker.free_bytes()

    @contextlib.contextmanager
    def neighbour(self, nbytes):
        with Neighbour(self._broker.command("hold", "--tenant", "neighbour", "--bytes",
                                            str(nbytes), "--wait", self._wait)) as neighbour:
            yield neighbour
        deadline = time.monotonic() + 30
        while self._broker.tenant("neighbour")["resident_bytes"]:
            if time.monotonic() > deadline:
                raise Problem("the neighbour's memory does not come back")
            time.sleep(0.02)  # between two looks


class HostForm:
    def __init__(self, name, gives_back):
        self.name, self.gives_back = name, gives_back
        self.about = ("scopes say when it works, and its cache can be asked for" if gives_back
                      else "what was freed is kept for the next batch, and nobody can ask for it")
        self.promise = promise(gives_back)

    @contextlib.contextmanager
    def open(self, programs, given):
        with Broker(programs, device="host", pool=HOST_POOL, tenants=TENANTS,
                    host_pool="16MiB", socket_dir=given.socket_dir) as broker:
            command = [sys.executable, "-B", HERE / "host_server.py",
                       "--socket-dir", broker.tenant_dir("server")]
            with Server("the image server", command + ["--gate"] * self.gives_back) as server:
                yield BrokerStage(server, broker, HOST_POOL, "20s" if self.gives_back else "1s")


class TorchForm:
    def __init__(self, name, gives_back):
        self.name, self.gives_back = name, gives_back
        self.about = ("scopes say when it works, and its cache can be asked for" if gives_back
                      else "unchanged, with leases for its own cache, which nobody can ask for")
        self.promise = promise(gives_back)

    @contextlib.contextmanager
    def open(self, programs, given):
        with Broker(programs, device=given.device, pool=GPU_POOL, tenants=TENANTS,
                    host_pool="4GiB", socket_dir=given.socket_dir) as broker:
            command = torch_server("gmb" if self.gives_back else "torch")
            environment = {"GMB_SOCKET_DIR": str(broker.tenant_dir("server"))}
            if not self.gives_back:
                # A bundle's libraries are for its own programs.
                path = os.environ.get("LD_LIBRARY_PATH", "")
                command = [*broker.command("run", "--tenant", "server", "--"), "env",
                           f"LD_LIBRARY_PATH={path}", *command]
            with Server("the image server", command, environment) as server:
                yield BrokerStage(server, broker, GPU_POOL, "20s" if self.gives_back else "1s")


class PlainTorch:
    """Without a broker. A third process leaves as much of the GPU as the pools of the others."""

    name, gives_back = "plain PyTorch", False
    about = "its caching allocator keeps what was freed, and nobody can ask for it"

    def __init__(self):
        self.promise = promise(False)

    @contextlib.contextmanager
    def open(self, programs, given):
        leave = subprocess.Popen(
            device_memory("leave", GPU_POOL + CONTEXTS), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        try:
            if not leave.stdout.readline().startswith("holding"):
                raise Problem("no memory of the GPU could be taken: is it in use?")
            with Server("the image server", torch_server("torch")) as server:
                yield PlainStage(server, leave)
        finally:
            leave.stdin.close()
            end(leave)


class PlainStage(Stage):
    def __init__(self, server, leave):
        super().__init__(server)
        self._leave = leave

    def held_bytes(self):
        return call(self._server.port, "GET", "/stats")["held_bytes"]

    def free_bytes(self):
        self._leave.stdin.write("free\n")
        self._leave.stdin.flush()
        return int(self._leave.stdout.readline())

    def neighbour(self, nbytes):
        return Neighbour(device_memory("take", nbytes))


def promise(gives_back):
    return ("the neighbour gets it: the server's cache went back to the pool" if gives_back
            else "the neighbour is refused: the server keeps what it does not use")


def torch_server(memory):
    return [sys.executable, "-B", str(HERE / "torch_server.py"), "--memory", memory]


def device_memory(what, nbytes):
    return [sys.executable, "-B", str(HERE / "device_memory.py"), what, str(nbytes)]
