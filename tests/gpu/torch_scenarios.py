#!/usr/bin/env python3
"""Run by tests/gpu/run-python: PyTorch with the broker's memory, one scenario a process.

    torch_scenarios.py SCENARIO

GMB_SOCKET_DIR is a broker with the tenants a, b and c; GMB_RUN runs the gmb command.
"""

import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import torch

import gmb
import gmb.torch
from gmb import _segments

MIB, GIB = 1 << 20, 1 << 30
SOCKETS = os.environ["GMB_SOCKET_DIR"]
scenario = sys.argv[1]


def say(word, text):
    print(f"{word:<5} {scenario:<14} {text}", flush=True)


def check(what, holds, note=""):
    say("PASS" if holds else "FAIL", what + (f" ({note})" if note else ""))


def note(text):
    say("", text)


def raises(kind, part, call):
    """Whether call() raises that with these words; what else happened is noted."""
    try:
        call()
    except kind as error:
        if part in str(error):
            return True
        note(f"{type(error).__name__}: {error}")
    except BaseException as error:
        note(f"{type(error).__name__}: {error}")
    else:
        note("nothing was raised")
    return False


def command(*arguments):
    return subprocess.run(
        [os.environ["GMB_RUN"], "gmb", "--socket-dir", SOCKETS, "--output", "json", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )


def tenant(name, field):
    return json.loads(command("tenant", "get", name).stdout)["pools"][0][field]


def granted():
    return json.loads(command("status").stdout)["pools"][0]["granted_bytes"]


def parked(name):
    sessions = json.loads(command("session", "list", "--tenant", name).stdout)["sessions"]
    return all(session["gate"] in ("PARKED", "CLOSED") for session in sessions)


def evict(nbytes, name="a"):
    """Has the memory taken, once it is parked; says how long the command took."""
    wait_until(lambda: parked(name))
    began = time.monotonic()
    done = command("reclaim", name, "--bytes", str(nbytes), "--wait", "20s")
    took = time.monotonic() - began
    away = tenant(name, "evicted_bytes")
    note(f"{away // MIB} MiB are away after {took:.2f} s")
    if done.returncode:
        note(done.stdout[-300:] + done.stderr[-300:])
    return away


def all_away():
    """Has all leased memory taken: what was only cached is given up for it."""
    evict(gmb.torch.stats().leased_bytes)
    return tenant("a", "evicted_bytes") >= gmb.torch.stats().leased_bytes - 8 * MIB


def wait_until(holds, seconds=20):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, 16, width // 16).transpose(1, 2)
            for part in self.qkv(self.norm(x)).chunk(3, dim=-1)
        )
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def transformer(layers=8, width=1024):
    torch.manual_seed(1)
    return torch.nn.Sequential(*(Block(width) for _ in range(layers))).half().eval()


def batch(rows=4, length=256, width=1024):
    torch.manual_seed(2)
    return torch.randn(rows, length, width).half()


def reference(model, x):
    """torch's result with its own memory."""
    native = type(model)(*(Block(1024) for _ in model)).half().eval()
    native.load_state_dict(model.state_dict())
    with torch.inference_mode():
        return native.cuda()(x.cuda()).cpu()


def release(nbytes_left=0):
    """Everything that nothing refers to goes back."""
    gc.collect()
    torch.cuda.empty_cache()
    gmb.torch.trim()


def inference():
    model, x = transformer(), batch()
    expected = reference(model, x)
    gmb.torch.enable(tenant="a", park_after=0.02)
    with gmb.torch.weights():
        model.cuda()
    weights = [p for p in model.parameters()]
    inside = [_segments.find(p.data_ptr()) for p in weights]
    check("weights are in leases, and sealed", all(s and s.sealed for s in inside))

    @gmb.torch.active()
    @torch.inference_mode()
    def answer():
        return model(x.cuda()).cpu()

    check("inference in leased memory is the same", torch.equal(answer(), expected))
    with gmb.torch.active():
        kept = torch.arange(64 * MIB, dtype=torch.int32, device="cuda")  # 256 MiB
        y = torch.ones(1000, device="cuda")
        check("what a scope allocates is leased", _segments.find(kept.data_ptr()) is not None)
        check("other tensors are not sealed", _segments.find(y.data_ptr()).sealed == 0)
    outside = torch.ones(1000, device="cuda")
    check("what is allocated outside is not", _segments.find(outside.data_ptr()) is None)
    addresses = [p.data_ptr() for p in weights]
    held = gmb.torch.stats().leased_bytes
    for turn in ("first", "second"):
        check(f"idle memory is taken, {turn} time", evict(held) >= held - 64 * MIB)
        check("torch's own memory is usable meanwhile", outside.sum().item() == 1000)
        began = time.monotonic()
        same = torch.equal(answer(), expected)
        check("and is back in a scope with its bytes", same,
              f"{time.monotonic() - began:.2f} s with the inference")
    with gmb.torch.active():
        check("also what was not weights",
              torch.equal(kept, torch.arange(64 * MIB, dtype=torch.int32, device="cuda")))
    check("addresses are the same", addresses == [p.data_ptr() for p in weights])

    # Trimming.
    with gmb.torch.active():
        big = torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")
        del big, kept
    unused = gmb.torch.stats().unused_bytes
    check("2 GiB are cached", unused >= 2 * GIB, f"{unused // MIB} MiB unused")
    before = granted()
    # The broker is told now and then what could be trimmed, and a trim that takes
    # longer than its command waits is none of that command's answer.
    said = []

    def trims():
        said.append(command("reclaim", "a", "--to", "trim", "--bytes", "2GiB", "--wait", "5s"))
        return before - granted() >= 2 * GIB

    trimmed, after = wait_until(trims), granted()
    check("the broker's trim gets them back", trimmed,
          f"{before // MIB} -> {after // MIB} MiB granted, exit codes {[one.returncode for one in said]}")
    check("inference is the same after trimming", torch.equal(answer(), expected))
    streams(expected, model, x)
    threads(expected, model, x)
    loaders(expected, model, x)
    del outside, y, weights
    gmb.torch.disable()
    with torch.inference_mode():
        check("after disable() tensors stay usable", torch.equal(model(x.cuda()).cpu(), expected))


def streams(expected, model, x):
    side = torch.cuda.Stream()
    wrong = 0
    with gmb.torch.active():
        for turn in range(60):
            a = torch.full((4 * MIB,), float(turn), device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                b = a * 2
                a.record_stream(side)
                del a
            c = torch.full((4 * MIB,), -1.0, device="cuda")  # may not take a's place yet
            torch.cuda.current_stream().wait_stream(side)
            wrong += int((b != 2 * turn).any().item())
            del b, c
    check("record_stream is honoured", wrong == 0)


def threads(expected, model, x):
    wrong = []

    def work():
        for _ in range(10):
            with gmb.torch.active(), torch.inference_mode():
                if not torch.equal(model(x.cuda()).cpu(), expected):
                    wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    check("four threads at once have the same results", not wrong)


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows, use_gmb=False):
        self.rows, self.use_gmb = rows, use_gmb

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        if self.use_gmb:
            with gmb.active():
                pass
        return self.rows[index]


def loaders(expected, model, x):
    loader = torch.utils.data.DataLoader(Rows(x), batch_size=4, num_workers=2, pin_memory=True)
    with torch.inference_mode():
        for rows in loader:
            with gmb.torch.active():
                same = torch.equal(model(rows.cuda(non_blocking=True)).cpu(), expected)
    check("a DataLoader's forked workers load", same)
    bad = torch.utils.data.DataLoader(Rows(x, use_gmb=True), num_workers=1)
    check("a worker that uses gmb gets a clear error",
          raises(gmb.ForkedError, "forked", lambda: list(bad)))
    gmb.active().__enter__().__exit__(None, None, None)


def graphs():
    model, x = transformer(), batch()
    expected = reference(model, x)
    gmb.torch.enable(tenant="a", park_after=0.02)
    with gmb.torch.weights():
        model.cuda()
    with gmb.torch.active(), torch.inference_mode():
        static = torch.zeros_like(x, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(static)
        torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), gmb.torch.graph(graph):
        output = model(static)
    check("a graph's memory is leased", _segments.find(output.data_ptr()) is not None)

    def replay(which, result):
        with gmb.torch.active(), torch.inference_mode():
            static.copy_(x)
            which.replay()
            return torch.equal(result.cpu(), expected)

    check("a graph's replay is the same", replay(graph, output))
    own = torch.cuda.CUDAGraph()
    with torch.inference_mode(), gmb.torch.active(capture=True), torch.cuda.graph(own):
        other = model(static)
    where = "torch's" if _segments.find(other.data_ptr()) is None else "the scope's"
    check("torch.cuda.graph in a scope keeps its own pool", where == "torch's", where)
    check("and its replay is the same", replay(own, other))
    for _ in range(2):
        held = gmb.torch.stats().leased_bytes
        check("the memory of both is taken", all_away())
        check("and the graph replayed", replay(graph, output))
        check("and torch's", replay(own, other))
    with gmb.torch.active():
        gmb.torch.trim()
    check("trimming leaves the graph alone", replay(graph, output))
    graph.reset()
    own.reset()
    del graph._gmb_pool, output, other
    release()
    check("a graph that is gone gives its memory back", granted() < held, f"{granted() // MIB} MiB")


def compile():
    model, x = transformer(layers=2), batch()
    expected = reference(model, x)
    gmb.torch.enable(tenant="a", park_after=0.02)
    with gmb.torch.weights():
        model.cuda()

    def close(function, capture=False):
        with gmb.torch.active(capture=capture), torch.inference_mode():
            got = function(x.cuda()).cpu().float()
        return (got - expected.float()).abs().max().item() < 0.05

    compiled = torch.compile(model)
    check("torch.compile", close(compiled) and close(compiled))
    check("its memory is taken", all_away())
    check("and it runs on", close(compiled))
    torch._dynamo.reset()
    fast = torch.compile(model, mode="reduce-overhead")
    check("torch.compile with CUDA graphs", all(close(fast, True) for _ in range(4)))
    check("its memory is taken", all_away())
    check("and its graphs are replayed", close(fast, True) and close(fast, True))


def limits():
    check("a scope without enable() says so",
          raises(RuntimeError, "gmb.torch.enable()", gmb.torch.active().__enter__))
    gmb.torch.enable(tenant="c", wait=0.2)
    check("enabling twice says so", raises(RuntimeError, "already", gmb.torch.enable))

    def too_much():
        return torch.empty(GIB, dtype=torch.uint8, device="cuda")

    with gmb.torch.active():
        try:
            too_much()
            check("a limit is torch.OutOfMemoryError", False)
        except torch.OutOfMemoryError as error:
            text, reason = str(error), gmb.torch.oom_reason()
            check("a limit is torch.OutOfMemoryError", "CUDA out of memory" in text)
            check("with the broker's reason", reason is not None and str(reason) in text
                  and reason.reason == gmb.Reason.TENANT_LIMIT, text.splitlines()[0])
            check("and its deficit", reason is not None and reason.deficit_bytes >= 512 * MIB)
        small = torch.ones(MIB, device="cuda")
        check("and what fits still works", small.sum().item() == MIB)
        check("sharing leased memory with processes says why not",
              raises(RuntimeError, "IPC", functools.partial(torch.multiprocessing.reductions.reduce_tensor, small)))
        closed = gmb.torch.pool()
        with closed:
            check("a pool within itself is refused", raises(RuntimeError, "one thread", closed.__enter__))

    @gmb.torch.active()
    def decorated():
        too_much()

    check("a decorated function raises it as well", raises(torch.OutOfMemoryError, "tenant's limit", decorated))

    class Wrong(torch.nn.Module):
        def forward(self, x):
            return x @ too_much()

    check("and a module", raises(torch.OutOfMemoryError, "limit",
                                 lambda: gmb.torch.active()(Wrong())(torch.ones(1))))
    check("an async function is refused", raises(TypeError, "coroutine", lambda: gmb.torch.active()(coroutine)))
    module = torch.nn.Linear(1000, 1000).cuda()
    before = module.weight.detach().cpu()
    gmb.torch.seal(module)
    sealed = [_segments.find(p.data_ptr()) for p in module.parameters()]
    with gmb.torch.active():
        check("seal() moves a module", all(s and s.sealed for s in sealed)
              and torch.equal(module.weight.cpu(), before))
    scratch = gmb.torch.pool(gmb.Contents.DISCARD)
    check("a pool outside of a scope is refused", raises(RuntimeError, "active", scratch.__enter__))
    with gmb.torch.active(), scratch:
        y = torch.ones(MIB, device="cuda")
        check("a pool of its own is leased", _segments.find(y.data_ptr()).group == scratch.group)
    with gmb.torch.active(synchronize=True):
        y += 1
    check("disabling in a scope is refused", raises(RuntimeError, "scopes", in_scope(gmb.torch.disable)))
    del y, small, module, scratch, closed
    gc.collect()
    gmb.torch.disable()
    gmb.torch.disable()
    check("all of it went back", wait_until(lambda: tenant("c", "resident_bytes") == 0))
    gmb.torch.enable(tenant="a", gate=False)
    z = torch.ones(MIB, device="cuda")
    check("without a gate the thread's tensors are leased", _segments.find(z.data_ptr()) is not None)
    command("reclaim", "a", "--bytes", "2MiB", "--wait", "1s")
    check("and never taken", tenant("a", "evicted_bytes") == 0 and z.sum().item() == MIB)
    gmb.torch.disable()
    check("torch is as it was", "__init__" not in torch.OutOfMemoryError.__dict__)


async def coroutine():
    pass


def in_scope(call):
    def inside():
        with gmb.torch.active():
            call()

    return inside


def training():
    gmb.torch.enable(tenant="a", park_after=0.02)
    torch.manual_seed(3)
    cpu = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512))
    x = torch.randn(64, 512)

    def train(model, data, turns, between):
        optimizer = torch.optim.Adam(model.parameters())
        for turn in range(turns):
            with gmb.torch.active():
                optimizer.zero_grad()
                loss = (model(data) - 1).square().mean()
                loss.backward()
                optimizer.step()
                if turn == 0:
                    leased = all(_segments.find(p.grad.data_ptr()) for p in model.parameters())
                last = loss.item()
            if between and turn % 2:
                between()
        return last, leased

    native = torch.nn.Sequential(*(type(m)(512, 512) if isinstance(m, torch.nn.Linear) else m for m in cpu))
    native.load_state_dict(cpu.state_dict())
    with gmb.torch.active():
        model, data = cpu.cuda(), x.cuda()
    first, leased = train(model, data, 6, None)
    check("backward allocates gradients in leases", leased)
    with gmb.torch.active():
        other, data = native.cuda(), x.cuda()
    away = []
    second, _ = train(other, data, 6, lambda: away.append(all_away()))
    check("all is taken three times in between", away == [True] * 3)
    check("training through evictions ends with the same loss", first == second, f"{first} {second}")


def throughput():
    model, x = transformer(layers=12), batch(8, 512)
    native = type(model)(*(Block(1024) for _ in model)).half().eval()
    native.load_state_dict(model.state_dict())
    native.cuda()
    own_x = x.cuda()
    gmb.torch.enable(tenant="a")
    with gmb.torch.weights():
        model.cuda()
    with gmb.torch.active():
        leased_x = x.cuda()

    def run_native(steps):
        with torch.inference_mode():
            for _ in range(steps):
                native(own_x)
        torch.cuda.synchronize()

    def run_leased(steps):
        with torch.inference_mode():
            for _ in range(steps):
                with gmb.torch.active():
                    model(leased_x)
        torch.cuda.synchronize()

    rates = {run_native: [], run_leased: []}
    for turn in range(31):
        for run in rates:
            began = time.perf_counter()
            run(20)
            took = time.perf_counter() - began
            if turn > 0:
                rates[run].append(took / 20 * 1e3)
    own, leased = (statistics.median(rates[run]) for run in (run_native, run_leased))
    ratio = own / leased
    check("throughput in leased memory is 99 % of torch's own", ratio >= 0.99,
          f"{own:.3f} and {leased:.3f} ms a step, one scope a step: {ratio:.4f}")
    scope = gmb.torch.active()
    costs = {}
    for name, one in (("gmb.torch.active()", scope), ("gmb.active(), no torch", None)):
        if one is None:
            gmb.torch.disable()
            client = gmb.connect(tenant="a")
            client.gate_on(park_after=10)
            one = gmb.active()
        began = time.perf_counter()
        for _ in range(20000):
            with one:
                pass
        costs[name] = (time.perf_counter() - began) / 20000 * 1e6
    note(", ".join(f"{name}: {cost:.2f} us a scope" for name, cost in costs.items()))


BOTH = """
import sys, torch, gmb.torch
gmb.torch.enable()  # the tenant of `gmb run`
outside = torch.ones(64 << 20, device="cuda")
with gmb.torch.active():
    inside = torch.ones(32 << 20, device="cuda")
    same = inside.sum().item() == 32 << 20 and outside.sum().item() == 64 << 20
print("right" if same else "wrong", flush=True)
sys.stdin.readline()
del inside, outside
"""
ENABLE = "import gmb.torch; gmb.torch.enable(tenant='a')"


def python(code, *before, **settings):
    """Another interpreter, by way of a command that may be given."""
    own = f"LD_LIBRARY_PATH={os.environ.get('LD_LIBRARY_PATH', '')}"
    return subprocess.Popen(
        [*before, "env", own, sys.executable, "-c", code], text=True, env={**os.environ, **settings},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def mistakes():
    with tempfile.TemporaryDirectory() as nobody:
        check("enable() without a broker says so",
              raises(gmb.UnavailableError, "no greeting from a broker", lambda: gmb.torch.enable(nobody)))
    check("and torch goes on with its own memory", torch.ones(4, device="cuda").sum().item() == 4)
    other = python(ENABLE, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    said = other.communicate(timeout=60)[1]
    check("with torch's other allocator enable() says so",
          other.returncode == 1 and "native allocator" in said, said.strip().splitlines()[-1][:120])
    two_allocators()
    broker_gone()


def two_allocators():
    both = python(BOTH, os.environ["GMB_RUN"], "gmb", "--socket-dir", SOCKETS, "run", "--tenant", "a", "--")
    check("gmb.torch under gmb run computes the same", both.stdout.readline().strip() == "right")
    leased = tenant("a", "resident_bytes") >> 20
    check("what is allocated in a scope and outside of one is leased", 384 <= leased < 640, f"{leased} MiB")
    said = both.communicate("end\n", timeout=60)[1]
    check("it ends well", both.returncode == 0, said[-300:])
    check("and both are given back", wait_until(lambda: tenant("a", "resident_bytes") == 0))


def broker_gone():
    with tempfile.TemporaryDirectory() as folder:
        sockets = os.path.join(folder, "s")
        broker = subprocess.Popen(
            [os.environ["GMB_RUN"], "gmbd", "--device", "cuda:0", "--pool", "1GiB", "--socket-dir", sockets,
             "--state-dir", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        gmb_of = [os.environ["GMB_RUN"], "gmb", "--socket-dir", sockets, "tenant", "set", "a", "--limit", "100%"]
        wait_until(lambda: subprocess.run(gmb_of, capture_output=True, check=False).returncode == 0)
        client = gmb.torch.enable(sockets, tenant="a", wait=0.5)
        with gmb.torch.active():
            x = torch.ones(MIB, device="cuda")
            torch.cuda.synchronize()
        broker.kill()
        broker.wait()
        wait_until(lambda: raises_quietly(client.check))
        check("the broker is gone: what is mapped stays", x.sum().item() == MIB)

        def more():
            with gmb.torch.active():
                torch.ones(256 * MIB, device="cuda")

        try:
            more()
            check("a new scope or segment is refused", False)
        except (gmb.UnavailableError, torch.OutOfMemoryError) as error:
            check("a new scope or segment is refused", True, f"{type(error).__name__}: {error}"[:160])
        check("and torch goes on with its own memory", torch.ones(4, device="cuda").sum().item() == 4)
        del x
        gmb.torch.disable()
        check("disable() ends it", not gmb.torch.enabled())


def raises_quietly(call):
    try:
        call()
    except gmb.Error:
        return True
    return False


globals()[scenario]()
