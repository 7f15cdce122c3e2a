#!/usr/bin/env python3
"""Run by tests/gpu/run-shared: one safetensors file in N processes, shared and plain.

    torch_shared.py FILE GIB            writes FILE, and drives workers
    torch_shared.py FILE GIB worker plain|shared

GMB_SOCKET_DIR is a broker with the tenant a; GMB_RUN runs the gmb command.
"""

import gc
import hashlib
import json
import os
import subprocess
import sys
import time

MIB, GIB = 1 << 20, 1 << 30
PATH, SIZE = sys.argv[1], int(sys.argv[2]) * GIB
SOCKETS = os.environ["GMB_SOCKET_DIR"]
WIDTH = 4096
LAYERS = SIZE // (WIDTH * WIDTH * 2)


def say(word, text):
    print(f"{word:<5} {'shared':<14} {text}", flush=True)


def check(what, holds, note=""):
    say("PASS" if holds else "FAIL", what + (f" ({note})" if note else ""))


def note(text):
    say("", text)


# --- One process that loads.


class Plain:
    """As everybody loads: a copy a process."""

    def __init__(self):
        import torch

        torch.zeros(1, device="cuda")

    def load(self):
        from safetensors.torch import load_file

        return load_file(PATH, device="cuda:0")

    def module(self, module, tensors):
        module.load_state_dict(tensors, assign=True)

    def use(self):
        import contextlib

        return contextlib.nullcontext()

    session = 0


class Shared:
    def __init__(self):
        import torch

        import gmb.torch

        torch.zeros(1, device="cuda")
        self.client = gmb.torch.enable(tenant="a", park_after=0.02, wait=30)
        self.session = self.client.session_id

    def load(self):
        import gmb.torch

        return gmb.torch.load_shared("weights", PATH)

    def module(self, module, tensors):
        import gmb.torch

        gmb.torch.share_module(module, "weights", PATH)
        first = next(module.parameters())
        before = first.data_ptr()
        gmb.torch.seal(module)
        assert before == tensors["0.weight"].data_ptr() == first.data_ptr()
        assert not first.requires_grad

    def use(self):
        import gmb.torch

        return gmb.torch.active()


def worker():
    import torch

    side = {"plain": Plain, "shared": Shared}[sys.argv[4]]()
    tensors = {}

    def load():
        began = time.monotonic()
        tensors.update(side.load())
        torch.cuda.synchronize()
        return {"took": time.monotonic() - began}

    def total():
        sums = hashlib.sha256()
        with side.use():
            began = time.monotonic()
            for name in sorted(tensors):
                parts = tensors[name].view(torch.int32).reshape(-1, 1 << 18)
                sums.update(repr(parts.sum(1, dtype=torch.int64).tolist()).encode())
        return {"sum": sums.hexdigest(), "took": time.monotonic() - began}

    def equal():
        from safetensors.torch import load_file

        wanted = load_file(PATH)
        with side.use():
            same = all(torch.equal(tensors[name].cpu(), wanted[name]) for name in wanted)
            kinds = all(
                (tensors[name].dtype, tensors[name].shape, tensors[name].is_contiguous())
                == (wanted[name].dtype, wanted[name].shape, True)
                for name in wanted
            )
        return {"same": same and kinds and set(tensors) == set(wanted)}

    def run():
        with torch.device("meta"):
            layers = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS))
            module = torch.nn.Sequential(*layers)
        side.module(module, tensors)
        torch.manual_seed(5)
        x = torch.randn(8, WIDTH, dtype=torch.bfloat16)
        with side.use(), torch.inference_mode():
            y = module(x.cuda()).float().cpu()
        return {"hash": hashlib.sha256(y.numpy().tobytes()).hexdigest(), "sum": y.sum().item()}

    def drop():
        tensors.clear()
        gc.collect()
        torch.cuda.empty_cache()
        return {}

    def again():
        more = side.load()
        return {"same": all(more[name].data_ptr() == tensors[name].data_ptr() for name in more)}

    def send():
        try:
            torch.multiprocessing.reductions.reduce_tensor(tensors["0.weight"])
        except RuntimeError as error:
            return {"error": str(error)}
        return {"error": ""}

    def write():
        try:
            with side.use():
                tensors["0.weight"].zero_()
                torch.cuda.synchronize()
        except RuntimeError as error:
            print(f"the write was refused: {error}", file=sys.stderr, flush=True)
            os._exit(3)  # nothing can be done with the context any more
        return {}

    scopes = []

    def enter():
        scopes.append(side.use())
        scopes[-1].__enter__()
        return {}

    def leave():
        scopes.pop().__exit__(None, None, None)
        return {}

    def cut():
        import gmb

        short = PATH + ".short"
        with open(PATH, "rb") as whole, open(short, "wb") as out:
            out.write(whole.read(MIB))
        try:
            import gmb.torch

            gmb.torch.load_shared("short", short)
        except gmb.SafetensorsError as error:
            return {"error": str(error)}
        finally:
            os.unlink(short)
        return {"error": ""}

    calls = dict(
        load=load, sum=total, equal=equal, run=run, drop=drop, again=again, send=send,
        write=write, enter=enter, leave=leave, cut=cut,
    )
    print(json.dumps({"session": side.session}), flush=True)
    for line in sys.stdin:
        print(json.dumps(calls[line.strip()]()), flush=True)
    tensors.clear()


# --- The driver.


class Worker:
    def __init__(self, side):
        self.process = subprocess.Popen(
            [sys.executable, __file__, PATH, sys.argv[2], "worker", side],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"a worker ended with {self.process.wait()}")
        return json.loads(line)

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ask(self, word):
        self.tell(word)
        return self.hear()


def ask_all(workers, word):
    for one in workers:
        one.tell(word)
    return [one.hear() for one in workers]


def command(*arguments):
    return subprocess.run(
        [os.environ["GMB_RUN"], "gmb", "--socket-dir", SOCKETS, "--output", "json", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )


def granted():
    return json.loads(command("status").stdout)["pools"][0]["granted_bytes"]


def evicted():
    return json.loads(command("tenant", "get", "a").stdout)["pools"][0]["evicted_bytes"]


def all_leases():
    return json.loads(command("lease", "list", "--tenant", "a").stdout)["leases"]


def shared_leases():
    return [lease for lease in all_leases() if lease["share_name"]]


def reclaim(nbytes):
    return command("reclaim", "a", "--bytes", str(nbytes), "--wait", "10s").returncode == 0


def used_mib():
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0])


def wait_until(holds, seconds=20):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def make_file():
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(3)
    scale = WIDTH**-0.5
    save_file(
        {
            f"{i}.weight": (torch.randn(WIDTH, WIDTH, device="cuda") * scale).bfloat16().cpu()
            for i in range(LAYERS)
        },
        PATH,
    )
    torch.cuda.empty_cache()


def measure(side, workers, figures):
    """N = 1, 4 and 8 processes load at once; the page cache is warm."""
    for count in (1, 4, 8):
        some = workers[:count]
        before = used_mib()
        began = time.monotonic()
        tooks = [heard["took"] for heard in ask_all(some, "load")]
        wall = time.monotonic() - began
        figures[side, count] = {
            "wall": wall, "mean": sum(tooks) / count, "device": used_mib() - before,
            "granted": granted() // MIB,
        }
        note(
            f"{side:<6} N={count}: all have it after {wall:.2f} s (mean {sum(tooks) / count:.2f}, "
            f"best {min(tooks):.2f}); device memory +{used_mib() - before} MiB, granted "
            f"{granted() // MIB} MiB"
        )
        yield count, some
        if count < 8:
            ask_all(some, "drop")


def drive():
    began = time.monotonic()
    # All start at once: importing torch takes its time.
    workers = {side: [Worker(side) for _ in range(8)] for side in ("plain", "shared")}
    make_file()
    sessions = {one: one.hear()["session"] for side in workers.values() for one in side}
    with open(PATH, "rb", buffering=0) as file:
        while file.read(64 * MIB):
            pass
    note(f"{SIZE / GIB:.0f} GiB in {LAYERS} tensors; ready after {time.monotonic() - began:.0f} s")
    figures = {}
    plain, shared = workers["plain"], workers["shared"]
    for count, some in measure("plain", plain, figures):
        if count == 1:
            expected = some[0].ask("sum")["sum"]
            output = some[0].ask("run")
    for one in plain:
        one.process.stdin.close()
    for one in plain:
        one.process.wait()

    for count, some in measure("shared", shared, figures):
        leases = shared_leases()
        check(f"{count} processes share one lease", len(leases) == 1
              and leases[0]["attached"] == count and leases[0]["sealed"], f"{len(leases)} leases")
        sums = {heard["sum"] for heard in ask_all(some, "sum")}
        check("all of them have the same bytes as a plain load", sums == {expected})
        if count < 8:
            ask_all(some, "drop")
            check("without tensors it goes back", wait_until(lambda: not shared_leases()))
    lease = shared_leases()[0]
    # The memory that each computes with comes from leases as well.
    others = sum(int(one["bytes"]) for one in all_leases() if not one["share_name"])
    check("it is charged once", int(lease["bytes"]) <= SIZE + 64 * MIB
          and granted() == int(lease["bytes"]) + others,
          f"{granted() // MIB} MiB granted, {others // MIB} of them for what they compute")
    for count in (1, 4, 8):
        a, b = figures["plain", count], figures["shared", count]
        note(f"N={count}: plain {a['wall']:.2f} s and {a['device']} MiB, shared {b['wall']:.2f} s "
             f"and {b['granted']} MiB: {a['wall'] / b['wall']:.1f} times as fast, "
             f"{a['device'] / max(1, b['granted']):.1f} times fewer bytes")
    writer = next(one for one in shared if sessions[one] == lease["session_id"])
    readers = [one for one in shared if one is not writer]
    check("byte for byte, also types and shapes", readers[0].ask("equal")["same"])
    check("loading it again is the same memory", readers[0].ask("again")["same"])
    got = readers[1].ask("run")
    close = abs(got["sum"] - output["sum"]) <= 1e-3 * max(1.0, abs(output["sum"]))
    check("a module of shared parameters computes the same", close,
          "same bits" if got["hash"] == output["hash"] else "")
    check("and is not moved by seal()", True)
    check("sharing it by CUDA IPC says why not", "IPC" in readers[1].ask("send")["error"])
    check("a truncated file is refused", "truncated" in readers[1].ask("cut")["error"])

    readers[2].ask("enter")
    wait_until(lambda: all_but_one_parked())
    reclaim(SIZE)
    check("with one active it is not taken", not any(
        lease["state"] in ("EVICTED", "EVICTING") for lease in shared_leases()))
    readers[2].ask("leave")
    for turn in ("first", "second"):
        # The rest of their memory is taken as well.
        taken = wait_until(lambda: reclaim(SIZE) or shared_leases()[0]["state"] == "EVICTED")
        check(f"with all parked it is taken, {turn} time", taken and evicted() >= SIZE,
              f"{evicted() // MIB} MiB away, {granted() // MIB} granted")
        began = time.monotonic()
        back = writer.ask("sum") if turn == "first" else readers[3].ask("sum")
        note(f"back and summed after {time.monotonic() - began:.2f} s")
        sums = {heard["sum"] for heard in ask_all(shared, "sum")} | {back["sum"]}
        check("it comes back with its bytes, for all", sums == {expected})

    readers[0].process.kill()
    readers[0].process.wait()
    check("a killed process leaves the others their bytes",
          wait_until(lambda: shared_leases()[0]["attached"] == 7)
          and {heard["sum"] for heard in ask_all(readers[1:], "sum")} == {expected})
    try:
        readers[4].ask("write")
        check("a write through an attached tensor ends who writes", False, "it went through")
    except EOFError as error:
        check("a write through an attached tensor ends who writes", True, str(error))
    others = [one for one in shared if one not in (readers[0], readers[4])]
    check("and nobody else, nor a byte",
          {heard["sum"] for heard in ask_all(others, "sum")} == {expected})
    writer.process.stdin.close()
    writer.process.wait()
    others.remove(writer)
    check("the writer may go first",
          {heard["sum"] for heard in ask_all(others, "sum")} == {expected})
    for one in others:
        one.process.stdin.close()
    check("all end well", all(one.process.wait(30) == 0 for one in others))
    check("and nothing is left", wait_until(lambda: not shared_leases() and granted() == 0))


def all_but_one_parked():
    sessions = json.loads(command("session", "list", "--tenant", "a").stdout)["sessions"]
    parked = [one["gate"] in ("PARKED", "CLOSED") for one in sessions]
    return parked.count(False) == 1


if len(sys.argv) > 3:
    worker()
else:
    drive()
