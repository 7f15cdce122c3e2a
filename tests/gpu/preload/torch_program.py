"""PyTorch as it comes: training, statistics, threads, streams, graphs, out of memory."""

import sys
import threading

import torch

from checks import GIB, MIB, attempt, await_leased, check, finish, leased, mib, note

BACKEND = torch.cuda.get_allocator_backend()
LIMIT = int(sys.argv[1])


def matmul():
    torch.manual_seed(1)
    a = torch.randn(2048, 2048, dtype=torch.float64)
    on_gpu = a.cuda()
    difference = (on_gpu @ on_gpu - (a @ a).cuda()).abs().max().item()
    check("a matrix product is right", difference < 1e-6, f"difference {difference:.1e}")


def budget():
    free, total = torch.cuda.mem_get_info()
    check("mem_get_info says the tenant's budget", total == LIMIT and 0 < free <= total,
          f"free {mib(free)} of {mib(total)}")


def train():
    torch.manual_seed(2)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 4).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.randn(16, 128, 512, device="cuda")
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(data) - data.roll(1, 1)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    check("20 training steps", losses[-1] < losses[0], f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
    if BACKEND == "native":
        reserved = torch.cuda.memory_reserved()
        check("what PyTorch reserved is leased", leased() >= reserved,
              f"reserved {mib(reserved)}, leased {mib(leased())}")
        check("its statistics are its own",
              0 < torch.cuda.memory_allocated() <= reserved and torch.cuda.memory_snapshot())


def empty_cache():
    big = [torch.ones(256 * MIB, dtype=torch.uint8, device="cuda") for _ in range(8)]
    before = leased()
    check("2 GiB more are leased", before >= 2 * GIB, mib(before))
    total = sum(int(one.sum(dtype=torch.int64).item()) for one in big)
    check("all of it holds what was written", total == 8 * 256 * MIB)
    del big
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    after = await_leased(lambda now: now <= before - 2 * GIB)
    check("empty_cache gives it back to the pool", after <= before - 2 * GIB,
          f"{mib(before)} to {mib(after)}")


def threads():
    wrong = []

    def work(seed):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            generator = torch.Generator(device="cuda").manual_seed(seed)
            for _ in range(60):
                size = int(torch.randint(1, 6 * MIB, (1,)).item())
                x = torch.full((size,), seed, dtype=torch.int32, device="cuda")
                y = torch.randn(300, 300, device="cuda", generator=generator)
                z = (y @ y.T).diagonal().min()
                if not (bool((x == seed).all()) and z.item() >= 0):
                    wrong.append(seed)
        stream.synchronize()

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    check("8 threads on 8 streams allocate, compute and verify", not wrong, wrong)


def other_stream():
    side = torch.cuda.Stream()
    right = True
    for i in range(50):
        x = torch.full((4 * MIB,), i, dtype=torch.int32, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000)
            y = x + 1
        x.record_stream(side)
        del x
        torch.full((4 * MIB,), -1, dtype=torch.int32, device="cuda")
        side.synchronize()
        right = right and bool((y == i + 1).all())
    check("record_stream keeps memory that another stream uses", right)


def graph():
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).cuda()
    still = torch.randn(64, 1024, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(still)
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            out = model(still)
        worst = 0.0
        for _ in range(20):
            x = torch.randn(64, 1024, device="cuda")
            still.copy_(x)
            captured.replay()
            worst = max(worst, (out - model(x)).abs().max().item())
    check("a graph's replays are those of eager runs", worst == 0.0, f"difference {worst}")
    del captured, out
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def graph_while_others_free():
    """Another thread frees what it holds while a graph is captured."""
    go, stop = threading.Event(), threading.Event()

    def free_often():
        import ctypes
        runtime = ctypes.CDLL(torch._C.__file__)  # its scope has the CUDA runtime
        malloc, free = runtime.cudaMalloc, runtime.cudaFree
        while not stop.is_set():
            pointer = ctypes.c_void_p()
            malloc(ctypes.byref(pointer), ctypes.c_size_t(4 * MIB))
            go.set()
            free(pointer)

    model = torch.nn.Linear(512, 512).cuda()
    still = torch.randn(8, 512, device="cuda")
    with torch.no_grad():
        model(still)
        torch.cuda.synchronize()
        worker = threading.Thread(target=free_often)
        worker.start()
        go.wait()
        try:
            for _ in range(20):
                captured = torch.cuda.CUDAGraph()
                with torch.cuda.graph(captured, capture_error_mode="relaxed"):
                    out = model(still)
                captured.replay()
            worst = (out - model(still)).abs().max().item()
        finally:
            stop.set()
            worker.join()
    check("20 captures while another thread allocates and frees", worst == 0.0)


def convolution():
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(3)
    x = torch.randn(8, 64, 112, 112, device="cuda")
    conv = torch.nn.Conv2d(64, 128, 3, padding=1).cuda()
    difference = (conv(x).cpu() - conv.cpu()(x.cpu())).abs().max().item()
    torch.backends.cudnn.benchmark = False
    check("cuDNN with benchmark on", difference < 1e-2, f"difference {difference:.1e}")


def out_of_memory():
    kept = torch.ones(GIB, dtype=torch.uint8, device="cuda")
    try:
        torch.empty(LIMIT, dtype=torch.uint8, device="cuda")
        check("more than the limit is refused", False)
    except torch.OutOfMemoryError as error:
        check("more than the limit is torch.OutOfMemoryError", True,
              str(error).split(". ")[0])
    check("and the program goes on", int(kept.sum(dtype=torch.int64).item()) == GIB)
    del kept
    half = [torch.empty(LIMIT // 4, dtype=torch.uint8, device="cuda") for _ in range(3)]
    del half
    again = torch.ones(LIMIT // 8 * 7, dtype=torch.uint8, device="cuda")
    check("its cache is given up for a large request", again[-1].item() == 1)
    del again
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


note(f"torch {torch.__version__}, allocator {BACKEND}")
for step in (matmul, budget, train, empty_cache, threads, other_stream, graph,
             graph_while_others_free, convolution, out_of_memory):
    attempt(step.__name__, step)
finish()
