#!/usr/bin/env python3
"""Replays traces (README.md) with PyTorch's allocator and, where it is
installed, RMM's pool: what heap_bench cannot do from C++.

    replay_torch.py [--rounds 5] TRACE...

Times are those of a call from Python, beside an empty one; reserved memory and
what of it is unused are the allocator's own. Needs a GPU and torch.
"""

import argparse
import statistics
import sys
import time

import torch

from trace_file import TraceError, read

MIB = 1 << 20


class Nothing:
    """The cost of the replay itself."""

    name = "an empty call from Python"

    def allocate(self, size, stream):
        return 1

    def free(self, block, size, stream):
        pass

    def reserved(self):
        return 0

    def clear(self):
        pass


class Torch:
    name = "torch.cuda caching allocator"

    def allocate(self, size, stream):
        return torch.cuda.caching_allocator_alloc(size, stream=stream) if size else 0

    def free(self, block, size, stream):
        if block:
            torch.cuda.caching_allocator_delete(block)

    def reserved(self):
        return torch.cuda.memory_stats()["reserved_bytes.all.peak"]

    def clear(self):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


class Rmm:
    """A pool that begins with nothing and grows as it needs to."""

    name = "rmm PoolMemoryResource"

    def __init__(self):
        import rmm

        self.rmm, self.streams = rmm, {}
        self.clear()

    def stream(self, handle):
        if handle not in self.streams:
            protocol = type("Handle", (), {"__cuda_stream__": lambda self: (0, handle)})
            self.streams[handle] = self.rmm.pylibrmm.stream.Stream(protocol())
        return self.streams[handle]

    def allocate(self, size, stream):
        return self.pool.allocate(size, self.stream(stream))

    def free(self, block, size, stream):
        self.pool.deallocate(block, size, self.stream(stream))

    def reserved(self):
        return self.upstream.allocation_counts.peak_bytes

    def clear(self):
        self.upstream = self.rmm.mr.StatisticsResourceAdaptor(self.rmm.mr.CudaMemoryResource())
        self.pool = self.rmm.mr.PoolMemoryResource(self.upstream, initial_pool_size=0)


def replay(events, allocator, streams):
    blocks = {}
    began = time.perf_counter_ns()
    for size, block, stream in events:
        if size is None:
            address, its_size = blocks.pop(block)
            allocator.free(address, its_size, streams[stream])
        else:
            blocks[block] = allocator.allocate(size, streams[stream]), size
    each = (time.perf_counter_ns() - began) / len(events)
    for address, size in blocks.values():
        allocator.free(address, size, streams[0])
    return each


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("traces", nargs="+")
    options = parser.parse_args(argv)
    try:
        traces = [(path, *read(path)) for path in options.traces]
    except TraceError as error:
        sys.exit(str(error))
    allocators = [Nothing(), Torch()]
    try:
        allocators.append(Rmm())
    except ImportError:
        print("rmm is not installed: left out")
    for path, events, most, count in traces:
        made = [torch.cuda.Stream() for _ in range(count)]
        streams = [stream.cuda_stream for stream in made]
        print(f"\n{path}: {len(events)} events, {count} streams, most live {most / MIB:.1f} MiB")
        print(f"{'':30} {'first ns':>10} {'again ns':>10} {'reserved MiB':>14} {'unused':>8}")
        for allocator in allocators:
            allocator.clear()
            first = replay(events, allocator, streams)
            reserved = allocator.reserved()
            again = statistics.median(replay(events, allocator, streams) for _ in range(options.rounds))
            unused = f"{100 * (1 - most / reserved):7.1f}%" if reserved else ""
            print(f"{allocator.name:30} {first:10.0f} {again:10.0f} {reserved / MIB:14.1f} {unused}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
