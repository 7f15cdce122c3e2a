"""PyTorch with torch.profiler: CUPTI in the program's own process, idle between requests.

    gate_profiler.py [DIR]

One trace ends before the first request, one is open while the memory goes and comes back, and
one begins after that. Each has to have the kernels that the answers in it ran. Without DIR it
answers two requests at once.
"""

import collections
import sys
import time

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from gate_requests import turns

torch.manual_seed(1)
ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.CUDA]

model = torch.nn.Sequential(
    *(torch.nn.Linear(4096, 4096, bias=False, dtype=torch.bfloat16) for _ in range(32))
).cuda()
x = torch.randn(64, 4096, dtype=torch.bfloat16, device="cuda")


@torch.no_grad()
def answer():
    return model(x).cpu()


def begun():
    """A trace that is under way."""
    trace = profile(activities=ACTIVITIES)
    trace.start()
    return trace


def seen_by(trace):
    """The work that ran on the GPU, by name; the trace ends."""
    torch.cuda.synchronize()
    trace.stop()
    return collections.Counter(
        event.name for event in trace.events() if event.device_type == DeviceType.CUDA)


for _ in range(3):
    before = answer()
first = begun()
answer()
seen = seen_by(first)
if not seen:
    sys.exit("no kernels are seen")
# That of the layers; there may be others, and copies.
kernel, one = seen.most_common(1)[0]
print(f"{one} kernels an answer: {kernel[:80]}", flush=True)

across = begun()
answer()
answers = 1  # in the trace that is open
print(f"ready, {sum(p.numel() for p in model.parameters()) * 2 >> 20} MiB of weights", flush=True)


def answer_turn(turn):
    """`across` is open; another one is when this returns."""
    global across, answers
    began = time.monotonic()
    now = answer()
    took = time.monotonic() - began
    seen = seen_by(across)[kernel]
    after = begun()
    again = answer()
    last = seen_by(after)[kernel]
    whole = seen == (answers + 1) * one and last == one
    same = torch.equal(now, before) and torch.equal(again, before)
    print(f"turn {turn}: first answer {took * 1e3:.1f} ms, {seen} kernels in the trace across, "
          f"{last} in the one after, kernels equal {whole}, equal {same}", flush=True)
    across, answers = begun(), 0


try:
    for number in turns() if len(sys.argv) > 1 else (1, 2):
        answer_turn(number)
finally:
    across.stop()
