"""ONNX Runtime's CUDA provider as it comes: results beside its CPU provider, threads,
a CUDA graph, its arena and the recipe's, out of memory."""

import gc
import sys
import threading

import numpy
import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException

from checks import GIB, MIB, attempt, await_leased, check, finish, leased, mib, note, skip
from onnxruntime_models import (CPU, CUDA, LAYERS, WIDTH, bound, layers_model, opened,
                                picture_model, square_model, filling_model)

LIMIT = int(sys.argv[1])
# The recipe of docs/frameworks.md.
SPARING = {"arena_extend_strategy": "kSameAsRequested"}


def ones(count):
    return numpy.ones(count, dtype=numpy.float32)


def gone(what, base):
    """The memory of a step's sessions is the pool's again."""
    gc.collect()
    after = await_leased(lambda now: now <= base + 64 * MIB)
    check(f"{what} gave its memory back", after <= base + 64 * MIB, mib(after))


def pictures():
    x = numpy.random.default_rng(5).standard_normal((4, 3, 512, 512)).astype(numpy.float32)
    session = opened(picture_model())
    check("the CUDA provider is used", session.get_providers()[0] == CUDA,
          session.get_providers())
    y = session.run(None, {"x": x})[0]
    wanted = opened(picture_model(), CPU).run(None, {"x": x})[0]
    difference = float(abs(y - wanted).max() / abs(wanted).max())
    check("convolutions are what the CPU provider says", difference < 1e-2,
          f"difference {difference:.1e}")
    check("it is in leased memory", leased() >= x.nbytes, mib(leased()))


def layers():
    model = layers_model()
    session = opened(model)
    check("weights are in leased memory", leased() >= LAYERS * 4 * WIDTH**2, mib(leased()))
    rows = [numpy.random.default_rng(i).standard_normal((16, WIDTH)).astype(numpy.float32)
            for i in range(8)]
    host = opened(model, CPU)
    wanted = [host.run(None, {"h0": x})[0] for x in rows]
    right = [True] * len(rows)

    def ask(i):
        for _ in range(20):
            y = session.run(None, {"h0": rows[i]})[0]
            right[i] = right[i] and abs(y - wanted[i]).max() < 2e-2

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("8 threads in one session are right", all(right))


def graph():
    session = opened(layers_model(), options={"enable_cuda_graph": "1"})
    binding, x, y = bound(session)
    host, right = opened(layers_model(), CPU), True
    for seed in range(5):
        rows = numpy.random.default_rng(seed).standard_normal((16, WIDTH))
        x.update_inplace(rows.astype(numpy.float32))
        session.run_with_iobinding(binding)
        wanted = host.run(None, {"h0": rows.astype(numpy.float32)})[0]
        right = right and abs(y.numpy() - wanted).max() < 2e-2
    check("a CUDA graph replayed with 5 inputs is right", bool(right))


def grown(options):
    """The bytes that the arena has leased for an input of 600 MiB beyond those from before."""
    base = leased()
    session = opened(square_model(), options=options)
    x = ones(150 << 20)
    first = session.run(None, {"x": x})[0]
    took = leased() - base
    shrink = onnxruntime.RunOptions()
    shrink.add_run_config_entry("memory.enable_memory_arena_shrinkage", "gpu:0")
    second = session.run(None, {"x": ones(1000)}, shrink)[0]
    after = await_leased(lambda now: now <= base + took // 4) - base
    right = bool((first == 1).all() and (second == 1).all())
    return right, took, after


def arena():
    for name, options in (("as it comes", {}), ("the recipe's", SPARING)):
        base = leased()
        right, took, after = grown(options)
        check(f"arena {name}: an input and an output of 600 MiB", right, f"leased {mib(took)}")
        note(f"arena {name}: after a run with memory.enable_memory_arena_shrinkage {mib(after)}")
        if options:
            check("the recipe's shrinkage gives back", after <= took // 4)
        gone(f"arena {name}", base)


def out_of_memory():
    session = opened(filling_model(), options=SPARING)
    try:
        session.run(None, {"n": numpy.array([(LIMIT + GIB) // 4])})
        check("more than the limit is refused", False)
    except (Fail, RuntimeException) as error:
        first = str(error).strip().split("\n")[0]
        check("more than the limit is an error that says so",
              "allocate memory" in first, first[-200:])
    y = session.run(None, {"n": numpy.array([GIB // 4])})[0]
    check("and the session goes on", y == 0)


note(f"onnxruntime {onnxruntime.__version__}, {onnxruntime.get_available_providers()}")
note(f"onnx {onnx.__version__}, limit {mib(LIMIT)} = {LIMIT // GIB} GiB")
if CUDA not in onnxruntime.get_available_providers():
    skip("onnxruntime was built without its CUDA provider")
    sys.exit(0)
# CUDA's libraries where wheels have them.
onnxruntime.preload_dlls()
for step in (pictures, layers, graph, arena, out_of_memory):
    before = leased()
    attempt(step.__name__, step)
    gone(step.__name__, before)
finish()
