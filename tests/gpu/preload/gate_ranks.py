"""One model on two GPUs, a rank on each, idle between requests.

    torchrun --standalone --nproc-per-node 2 gate_ranks.py DIR MIB

Each rank has so much memory. They say "ready", and answer a request whenever DIR/go-N
appears; rank 0 says how long it took and whether the answer is the one of before.
"""

import os
import sys
import time

import torch
import torch.distributed as dist

DIR, MIB = sys.argv[1], int(sys.argv[2])
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
torch.manual_seed(1 + rank)

weights = [
    torch.randn(4096, 4096, dtype=torch.bfloat16, device="cuda") / 64
    for _ in range(MIB // 32)
]
x = torch.randn(64, 4096, dtype=torch.bfloat16, device="cuda")


def answer():
    out = x
    for weight in weights:
        out = torch.nn.functional.layer_norm(out @ weight, (4096,))
    out = out.float()
    dist.all_reduce(out)
    return out.cpu()


def say(text):
    """In one piece: the ranks write to one file."""
    os.write(1, f"{text}\n".encode())


for _ in range(3):
    first = answer()
say(f"ready {rank}")

turn = 0
while True:
    turn += 1
    while not os.path.exists(f"{DIR}/go-{turn}"):
        if os.path.exists(f"{DIR}/end"):
            sys.exit(0)
        time.sleep(0.01)
    began = time.monotonic()
    now = answer()
    took = time.monotonic() - began
    say(f"rank {rank} turn {turn}: {took * 1e3:.1f} ms, equal {torch.equal(now, first)}")
