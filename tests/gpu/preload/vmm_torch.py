"""PyTorch with expandable segments grows, shrinks and runs out of memory.

Lines that begin with "result" are the same natively and under `gmb run`.
"""

import time

import torch

MIB = 1 << 20

torch.manual_seed(7)


def checksum(tensors):
    return sum(int(t.to(torch.int64).sum()) for t in tensors)


# Tensors of many sizes, some of which go, so that segments grow in the middle.
generator = torch.Generator().manual_seed(7)
sizes = torch.randint(1, 40 * MIB, (60,), generator=generator).tolist()
kept = []
for i, size in enumerate(sizes):
    kept.append(torch.full((size,), i % 251, dtype=torch.uint8, device="cuda"))
    if i % 3 == 2:
        del kept[len(kept) // 2]
print("result", len(kept), checksum(kept))

began = time.monotonic()
x = torch.empty(1024 * MIB, dtype=torch.uint8, device="cuda").fill_(3)
torch.cuda.synchronize()
print(f"growing by 1 GiB took {(time.monotonic() - began) * 1e3:.1f} ms")
print("result", int(x.to(torch.int32)[:: 4096].sum()))
del x
began = time.monotonic()
torch.cuda.empty_cache()
print(f"giving it back took {(time.monotonic() - began) * 1e3:.1f} ms")
print("result", checksum(kept))

# More than there is, natively and under any limit.
try:
    torch.empty(200 << 30, dtype=torch.uint8, device="cuda")
    print("result allocated")
except torch.cuda.OutOfMemoryError:
    print("result out of memory")
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(),
                            torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(64, 1024, device="cuda")
losses = []
for _ in range(20):
    optimizer.zero_grad(set_to_none=True)
    loss = (model(batch) - batch).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("result", " ".join(f"{loss:.4f}" for loss in losses[::6]))
print("result", checksum(kept), torch.cuda.memory_reserved() >= torch.cuda.memory_allocated())
