"""Two ranks that add each other's memory by legacy CUDA IPC, as the custom all-reduce of vLLM
and SGLang does: a rank on each of two GPUs, or both on the only one.

    ipc_peers.py DIR

They share memory of cudaMalloc, PyTorch's blocks by handle and offset, and blocks of a CUDA
graph; kernels of each read the other's memory and wait for its signals. Between the two halves
they are idle until DIR/go-1 appears. Natively and under `gmb run` it prints the same, but for
the lines that begin with "?".
"""

import ctypes
import sys
import time

import torch
import torch.multiprocessing as multiprocessing

from cuda_ipc import Cuda, Opened
from gate_requests import turns

BLOCKS, THREADS = 36, 512  # vLLM's
COUNT = 3 << 18  # floats: 3 MiB, of which PyTorch puts six into one allocation
SIGNAL_BYTES = 4 * (3 * BLOCKS + 1)
WEIGHTS = 64 << 20  # floats: 256 MiB that is not shared
PATIENCE = 120  # seconds, for the other process

# Sums what the two pointers in `table` lead to. The signal areas have words for the start, the
# end and the count of each block, and one that says that the other rank did not come.
KERNEL = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry all_reduce(.param .u64 table, .param .u64 out, .param .u64 own,
                           .param .u64 peer, .param .u32 count)
{
  .reg .pred %go, %end, %others;
  .reg .u32 %block, %blocks, %width, %thread, %i, %step, %count, %turn, %seen;
  .reg .u64 %table, %out, %own, %peer, %one, %two, %at, %place, %word, %until, %now, %lost;
  .reg .f32 %a, %b;
  ld.param.u64 %table, [table];
  ld.param.u64 %out, [out];
  ld.param.u64 %own, [own];
  ld.param.u64 %peer, [peer];
  ld.param.u32 %count, [count];
  cvta.to.global.u64 %table, %table;
  cvta.to.global.u64 %out, %out;
  cvta.to.global.u64 %own, %own;
  cvta.to.global.u64 %peer, %peer;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  setp.ne.u32 %others, %thread, 0;
  mul.wide.u32 %place, %block, 4;
  mul.wide.u32 %word, %blocks, 4;
  add.u64 %own, %own, %place;
  add.u64 %peer, %peer, %place;
  sub.u64 %lost, %own, %place;
  mad.lo.u64 %lost, %word, 3, %lost;
  mov.u32 %turn, 0;
  @%others bra BEGUN;
  mad.lo.u64 %at, %word, 2, %own;
  ld.global.u32 %turn, [%at];
  add.u32 %turn, %turn, 1;
  st.global.u32 [%at], %turn;
  mov.u64 %until, %globaltimer;
  add.u64 %until, %until, 20000000000;
  st.release.sys.global.u32 [%peer], %turn;
AWAIT_START:
  ld.acquire.sys.global.u32 %seen, [%own];
  setp.ge.u32 %go, %seen, %turn;
  @%go bra BEGUN;
  mov.u64 %now, %globaltimer;
  setp.lt.u64 %go, %now, %until;
  @%go bra AWAIT_START;
  st.global.u32 [%lost], %turn;
BEGUN:
  bar.sync 0;
  ld.global.u64 %one, [%table];
  ld.global.u64 %two, [%table+8];
  cvta.to.global.u64 %one, %one;
  cvta.to.global.u64 %two, %two;
  mad.lo.u32 %i, %block, %width, %thread;
  mul.lo.u32 %step, %blocks, %width;
NEXT:
  setp.ge.u32 %end, %i, %count;
  @%end bra DONE;
  mul.wide.u32 %place, %i, 4;
  add.u64 %at, %one, %place;
  ld.global.f32 %a, [%at];
  add.u64 %at, %two, %place;
  ld.global.f32 %b, [%at];
  add.f32 %a, %a, %b;
  add.u64 %at, %out, %place;
  st.global.f32 [%at], %a;
  add.u32 %i, %i, %step;
  bra NEXT;
DONE:
  bar.sync 0;
  @%others bra ENDED;
  add.u64 %at, %peer, %word;
  st.release.sys.global.u32 [%at], %turn;
  add.u64 %at, %own, %word;
AWAIT_END:
  ld.acquire.sys.global.u32 %seen, [%at];
  setp.ge.u32 %go, %seen, %turn;
  @%go bra ENDED;
  mov.u64 %now, %globaltimer;
  setp.lt.u64 %go, %now, %until;
  @%go bra AWAIT_END;
  st.global.u32 [%lost], %turn;
ENDED:
  ret;
}
"""


def pattern(rank, turn):
    """Exact as floats, and so are the sums."""
    place = torch.arange(COUNT, device="cuda", dtype=torch.int64)
    return ((place * (2 * rank + 1)) % 4093 + 17 * turn).float()


def sums(turn):
    return pattern(0, turn) + pattern(1, turn)


class Rank:
    """One of the two, in its own process."""

    def __init__(self, rank, device, parent, peer):
        self.rank, self.parent, self.peer = rank, parent, peer
        torch.cuda.set_device(device)
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.cuda = Cuda()
        self.opened = Opened(self.cuda)
        self.kernel = self.cuda.function(KERNEL, "all_reduce")

    def say(self, text):
        self.parent.send(f"rank {self.rank}: {text}")

    def exchange(self, word):
        """The other rank's, once this one's work is done."""
        torch.cuda.synchronize()
        self.peer.send(word)
        if not self.peer.poll(PATIENCE):
            sys.exit("the other rank says nothing")
        return self.peer.recv()

    def both(self, pointer):
        """Where this rank's memory is, and the other's like it, in the order of the ranks."""
        handle, offset = self.cuda.handle_of(pointer)
        own = (pointer, self.opened.at(*self.exchange((handle, offset))))
        return list(own if self.rank == 0 else own[::-1]), offset

    def table(self, pointers):
        return torch.tensor(pointers, dtype=torch.int64, device="cuda")

    def all_reduce(self, table, out):
        own, other = self.signals[self.rank], self.signals[1 - self.rank]
        self.cuda.launch(self.kernel, BLOCKS, THREADS, *(
            ctypes.c_uint64(one) for one in (table.data_ptr(), out.data_ptr(), own, other)),
            ctypes.c_uint32(COUNT))

    def share(self):
        self.weights = torch.arange(WEIGHTS, device="cuda", dtype=torch.float32)
        self.signals = self.both(self.cuda.malloc(SIGNAL_BYTES))[0]
        self.buffer = self.cuda.malloc(4 * COUNT)
        self.buffers = self.both(self.buffer)[0]
        # One after the other in one allocation of PyTorch's, so of one handle.
        self.inputs, self.tables = [], []
        for _ in range(3):
            self.inputs.append(torch.zeros(COUNT, device="cuda"))
            pointers, offset = self.both(self.inputs[-1].data_ptr())
            self.tables.append(self.table(pointers))
            self.say(f"a tensor at {offset} of its allocation")
        self.buffer_table = self.table(self.buffers)
        self.say(f"{len(self.opened.bases)} allocations are open")

    def eager(self, first):
        right, out = 0, torch.zeros(COUNT, device="cuda")
        for turn in range(first, first + 6):
            self.inputs[turn % 3].copy_(pattern(self.rank, turn))
            self.all_reduce(self.tables[turn % 3], out)
            right += torch.equal(out, sums(turn))
        self.say(f"of tensors: {right} of 6 sums right")
        # As vLLM does for what is not registered: copied first.
        right = 0
        for turn in range(first, first + 4):
            value = pattern(self.rank, turn + 100)
            self.cuda.copy(self.buffer, value.data_ptr(), 4 * COUNT)
            self.all_reduce(self.buffer_table, out)
            right += torch.equal(out, sums(turn + 100))
        self.say(f"of a buffer: {right} of 4 sums right")

    def capture(self):
        """The pointers are filled in when the graph is there, as vLLM does it."""
        self.asked = torch.zeros(COUNT, device="cuda")
        self.graph_table = torch.zeros(2, dtype=torch.int64, device="cuda")
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.graph_out = torch.empty_like(self.asked)
            self.inner = self.asked * 2
            self.all_reduce(self.graph_table, self.graph_out)
        pointers, offset = self.both(self.inner.data_ptr())
        self.graph_table.copy_(self.table(pointers))
        self.say(f"a tensor of the graph at {offset} of its allocation")

    def replay(self, first):
        right = 0
        for turn in range(first, first + 4):
            self.asked.copy_(pattern(self.rank, turn))
            self.graph.replay()
            right += torch.equal(self.graph_out, 2 * sums(turn))
        self.say(f"of the graph: {right} of 4 sums right")

    def copies(self):
        """Out of the other's memory, and into it."""
        other = self.buffers[1 - self.rank]
        mine = pattern(self.rank, 200)
        self.cuda.copy(self.buffer, mine.data_ptr(), 4 * COUNT)
        self.exchange("written")
        got = torch.zeros(COUNT, device="cuda")
        self.cuda.copy(got.data_ptr(), other, 4 * COUNT)
        self.say(f"a copy from the other: right {torch.equal(got, pattern(1 - self.rank, 200))}")
        self.exchange("read")
        mine = pattern(self.rank, 300)
        self.cuda.copy(other, mine.data_ptr(), 4 * COUNT)
        self.exchange("written over")
        self.cuda.copy(got.data_ptr(), self.buffer, 4 * COUNT)
        self.say(f"a copy by the other: right {torch.equal(got, pattern(1 - self.rank, 300))}")

    def lost(self):
        """Whether a wait for the other rank has ended without it."""
        word = torch.zeros(1, dtype=torch.int32, device="cuda")
        own = self.signals[self.rank]
        self.cuda.copy(word.data_ptr(), own + SIGNAL_BYTES - 4, 4)
        self.say(f"waits in vain: {word.item()}")

    def run(self):
        self.share()
        self.eager(1)
        self.capture()
        self.replay(20)
        self.copies()
        self.exchange("so far")
        self.parent.send("idle")
        self.parent.recv()
        began = time.monotonic()
        self.eager(40)
        self.parent.send(f"? rank {self.rank}: back after {time.monotonic() - began:.3f} s")
        self.replay(60)
        self.copies()
        expected = torch.arange(WEIGHTS, device="cuda", dtype=torch.float32)
        self.say(f"its weights: right {torch.equal(self.weights, expected)}")
        self.lost()
        self.exchange("done")
        self.say(f"closes {self.opened.close()}")
        self.exchange("closed")
        self.cuda.free(self.buffer)
        self.cuda.free(self.signals[self.rank])
        self.parent.send("end")


def start(rank, device, parent, peer):
    Rank(rank, device, parent, peer).run()


def print_until(word, ranks):
    """The words of the ranks, one after the other, until each says the word."""
    for rank in ranks:
        while True:
            if not rank.poll(PATIENCE):
                sys.exit("a rank says nothing")
            said = rank.recv()
            if said == word:
                break
            print(said, flush=True)


def main():
    context = multiprocessing.get_context("spawn")
    gpus = torch.cuda.device_count()
    print(f"{min(gpus, 2)} GPUs", flush=True)
    left, right = context.Pipe()
    ranks, processes = [], []
    for rank, peer in enumerate((left, right)):
        ours, theirs = context.Pipe()
        process = context.Process(target=start, args=(rank, rank % gpus, theirs, peer),
                                  daemon=True)
        process.start()
        theirs.close()
        ranks.append(ours)
        processes.append(process)
    left.close()
    right.close()
    print_until("idle", ranks)
    print("ready", flush=True)
    next(turns())
    for rank in ranks:
        rank.send("go on")
    print_until("end", ranks)
    for process in processes:
        process.join(PATIENCE)
        if process.exitcode != 0:
            sys.exit(f"a rank ends with {process.exitcode}")
    print("both ranks ended", flush=True)


if __name__ == "__main__":
    main()
