"""PyTorch as it comes, idle between requests: its memory goes and comes back.

    gate_torch.py [compile | health GIB] DIR

Says "ready" and answers a request whenever DIR/go-N appears; a line for each with
how long it took and whether the answer is the one of before.
compile: of models that torch.compile made, with a graph of its own (reduce-overhead) and without.
health: of GIB of memory, and a thread that answers /health meanwhile.
"""

import sys
import time

import torch

import gate_health
import gate_requests
from gate_requests import turns

torch.manual_seed(1)


def compiled():
    """Two ways of compiling one model, each asked for two shapes."""
    net = torch.nn.Sequential(
        *(
            torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048))
            for _ in range(12)
        )
    ).cuda().bfloat16()
    ways = [torch.compile(net), torch.compile(net, mode="reduce-overhead")]
    inputs = [torch.randn(rows, 2048, dtype=torch.bfloat16, device="cuda") for rows in (64, 16)]
    ballast = torch.arange(1 << 27, dtype=torch.float32, device="cuda")  # more to copy

    @torch.no_grad()
    def answer():
        answers = [way(x).float().sum(dim=0).cpu() for way in ways for x in inputs]
        total = float(ballast.sum(dtype=torch.float64))
        return [one.tolist() for one in answers], total

    for _ in range(3):  # recorded at the second time
        answer()
    gate_requests.serve(answer, "models that were compiled, 0.5 GiB beside them")


def healthy(gib):
    blocks = [torch.full((1 << 30,), number, dtype=torch.uint8, device="cuda")
              for number in range(1, gib + 1)]
    weights = torch.randn(2048, 2048, device="cuda")

    def answer():
        # Eight bytes at a time: a sum of another type takes eight times the block.
        sums = [int(block.view(torch.int64).sum()) for block in blocks]
        return sums, float((weights @ weights).sum())

    gate_health.serve(answer, f"{gib} GiB of tensors")


if sys.argv[1] == "compile":
    compiled()
if sys.argv[1] == "health":
    healthy(int(sys.argv[2]))

layers = [torch.nn.Linear(4096, 4096, bias=False, dtype=torch.bfloat16) for _ in range(32)]
model = torch.nn.Sequential(*layers).cuda()
x = torch.randn(64, 4096, dtype=torch.bfloat16, device="cuda")

trained = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.Adam(trained.parameters(), lr=1e-4)
sample = torch.randn(32, 1024, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = trained(sample).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


with torch.no_grad():
    for _ in range(3):
        first = model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_out = model(x)
    graph.replay()
    torch.cuda.synchronize()
before = first.cpu()
losses = [step() for _ in range(3)]
assert torch.equal(static_out.cpu(), before)
print(f"ready {sum(p.numel() for p in model.parameters()) * 2 >> 20} MiB of weights", flush=True)

for turn in turns():
    began = time.monotonic()
    with torch.no_grad():
        now = model(x).cpu()
    took = time.monotonic() - began
    static_out.zero_()
    graph.replay()
    same = torch.equal(now, before) and torch.equal(static_out.cpu(), before)
    losses.append(step())
    falls = all(b < a for a, b in zip(losses, losses[1:]))
    began = time.monotonic()
    with torch.no_grad():
        model(x).cpu()
    resident = time.monotonic() - began
    print(f"turn {turn}: first answer {took * 1e3:.1f} ms, resident {resident * 1e3:.1f} ms, "
          f"eager and graph equal {same}, training goes on {falls}", flush=True)
