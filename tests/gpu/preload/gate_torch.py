"""PyTorch as it comes, idle between requests: its memory goes and comes back.

    gate_torch.py DIR

Says "ready" and answers a request whenever DIR/go-N appears; a line for each with
how long it took and whether the answer is the one of before.
"""

import time

import torch

from gate_requests import turns

torch.manual_seed(1)

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
