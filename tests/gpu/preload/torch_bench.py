"""Throughput of a small transformer's inference, as one JSON line for each size."""

import json
import sys
import time

import torch


def measure(width, batch, seconds, graph):
    torch.manual_seed(4)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().half().eval()
    x = torch.randn(batch, 128, width, device="cuda", dtype=torch.half)
    with torch.no_grad():
        for _ in range(10):
            model(x)
        torch.cuda.synchronize()
        step = lambda: model(x)
        if graph:
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                model(x)
            step = captured.replay
        times = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            for _ in range(20):
                step()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - began) / 20)
    return sorted(times)[len(times) // 2]


SECONDS = float(sys.argv[1])
for width, batch in ((256, 1), (512, 8), (1024, 32)):
    for graph in (False, True):
        took = measure(width, batch, SECONDS, graph)
        print(json.dumps({"size": f"width {width} batch {batch} {'graph' if graph else 'eager'}",
                          "seconds": took}), flush=True)
