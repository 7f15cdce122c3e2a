"""gmb.torch under `gmb run`: memory of scopes and memory of cudaMalloc, in one session.

    gate_torch_both.py DIR

As gate_torch.py; half of the model is in scopes, and half is not.
"""

import time

import torch

import gmb.torch

from gate_requests import turns

torch.manual_seed(1)


def layers(count):
    return torch.nn.Sequential(
        *(torch.nn.Linear(4096, 4096, bias=False, dtype=torch.bfloat16) for _ in range(count))
    )


outside = layers(16).cuda()
x = torch.randn(64, 4096, dtype=torch.bfloat16, device="cuda")
client = gmb.torch.enable()
with gmb.torch.weights():
    inside = layers(16).cuda()


@gmb.torch.active()
@torch.no_grad()
def in_scope():
    return inside(x).cpu()


@torch.no_grad()
def without():
    return outside(x).cpu()


for _ in range(3):
    first = in_scope(), without()
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), gmb.torch.graph(graph):
    static_out = inside(x)


@gmb.torch.active()
def replay():
    static_out.zero_()
    graph.replay()
    return static_out.cpu()


assert torch.equal(replay(), first[0])
print(f"ready, session {client.session_id}, {gmb.torch.stats().leased_bytes >> 20} MiB in scopes",
      flush=True)

for turn in turns():
    # The one that comes first brings all of it back.
    calls = (in_scope, without) if turn % 2 else (without, in_scope)
    took, now = [], {}
    for call in calls:
        began = time.monotonic()
        now[call] = call()
        took.append((time.monotonic() - began) * 1e3)
    same = torch.equal(now[in_scope], first[0]) and torch.equal(now[without], first[1])
    same = same and torch.equal(replay(), first[0])
    print(f"turn {turn}: first answer {took[0]:.1f} ms, second {took[1]:.1f} ms, equal {same}",
          flush=True)
