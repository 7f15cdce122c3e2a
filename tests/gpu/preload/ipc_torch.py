"""CUDA tensors in other processes, by torch.multiprocessing: run under `gmb run`.

Prints a line for each thing that was seen, and "all checks passed" at the end.
"""

import sys

import torch
import torch.multiprocessing as multiprocessing

ROWS = 4096


def other(received, answers):
    """Adds one to all that it gets, in place, and says the sums."""
    for tensor in iter(received.get, None):
        tensor.add_(1)
        torch.cuda.synchronize()
        answers.put(tensor.double().sum().item())
        del tensor
    answers.put("done")


def check(what, right):
    print(what, "right" if right else "WRONG", flush=True)
    if not right:
        sys.exit(1)


def main():
    multiprocessing.set_start_method("spawn")
    received, answers = multiprocessing.Queue(), multiprocessing.Queue()
    process = multiprocessing.Process(target=other, args=(received, answers))
    process.start()
    large = torch.zeros(ROWS, ROWS, device="cuda")
    small = torch.full((100,), 5.0, device="cuda")
    view = large[ROWS // 2 :]  # of the same allocation, at an offset
    for turn, (name, tensor, expected) in enumerate(
        (
            ("large", large, ROWS * ROWS),
            ("small", small, 600),
            ("a part of large", view, ROWS * ROWS),
            ("large again", large, 2 * ROWS * ROWS + ROWS * ROWS // 2),
        )
    ):
        received.put(tensor)
        answer = answers.get(timeout=120)
        check(f"{turn} {name}: {answer}", answer == expected)
        check(f"{turn} here", tensor.double().sum().item() == expected)
    # Of blocks that the allocator has given back and taken again.
    del large, view
    torch.cuda.empty_cache()
    for i in range(20):
        tensor = torch.full((ROWS, 256), float(i), device="cuda")
        received.put(tensor)
        check(f"block {i}", answers.get(timeout=120) == ROWS * 256 * (i + 1))
    received.put(None)
    check("the other one ends", answers.get(timeout=120) == "done")
    process.join(60)
    check(f"with {process.exitcode}", process.exitcode == 0)
    print("all checks passed", flush=True)


if __name__ == "__main__":
    main()
