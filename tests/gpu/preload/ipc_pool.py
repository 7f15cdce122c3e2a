"""A pool of device memory that another process works in, as Triton's Python backend does.

    ipc_pool.py

The server has one allocation and hands out places in it, each by the allocation's handle and an
offset. The other process opens the handle once and uses many places, closes it, opens it again.
Natively and under `gmb run` it prints the same.
"""

import sys

import torch
import torch.multiprocessing as multiprocessing

from cuda_ipc import Cuda, Opened, tensor_at

POOL_BYTES = 64 << 20
ALIGNMENT = 256
PLACES = 40
PATIENCE = 120  # seconds, for the other process


def floats_in(place):
    """Of a place: a few, and many; the last one ends with the pool."""
    return 1000 + 9973 * place


def value_of(place, turn):
    count = floats_in(place)
    return (torch.arange(count, device="cuda", dtype=torch.int64) % 1021 + place + turn).float()


def backend(pipe):
    """Doubles what it is asked for, in place, until it is told to end."""
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    cuda = Cuda()
    opened = Opened(cuda)
    for word, *rest in iter(pipe.recv, ("end",)):
        if word == "double":
            pointer = opened.at(*rest[:2])
            tensor_at(pointer, rest[2]).mul_(2)
            answer = len(opened.bases)
        elif word == "twice":
            # Opened once more it is at the same address, and closed once it is still there.
            base = opened.at(rest[0], 0)
            again = cuda.open(rest[0])
            cuda.close(again)
            answer = base == again
        else:
            answer = opened.close()
        torch.cuda.synchronize()
        pipe.send(answer)
    pipe.send("ended")  # and has it open still


class Server:
    def __init__(self, pipe):
        self.pipe = pipe
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.cuda = Cuda()
        self.pool = self.cuda.malloc(POOL_BYTES)
        self.places, at = [], ALIGNMENT
        for place in range(PLACES):
            self.places.append(at)
            at += -(-4 * floats_in(place) // ALIGNMENT) * ALIGNMENT
        self.places[-1] = POOL_BYTES - 4 * floats_in(PLACES - 1)

    def ask(self, *words):
        torch.cuda.synchronize()
        self.pipe.send(words)
        if not self.pipe.poll(PATIENCE):
            sys.exit("the other process says nothing")
        return self.pipe.recv()

    def tensor(self, place):
        return tensor_at(self.pool + self.places[place], floats_in(place))

    def turn(self, turn):
        """Each place filled, then doubled by the other one; how many are right."""
        for place in range(PLACES):
            self.tensor(place).copy_(value_of(place, turn))
        bases = set()
        for place in range(PLACES):
            handle, offset = self.cuda.handle_of(self.pool + self.places[place])
            if offset != self.places[place]:
                sys.exit(f"a place at {offset} instead of {self.places[place]}")
            bases.add(self.ask("double", handle, offset, floats_in(place)))
        right = sum(torch.equal(self.tensor(place), 2 * value_of(place, turn))
                    for place in range(PLACES))
        print(f"turn {turn}: {right} of {PLACES} places right, allocations open {bases}",
              flush=True)

    def run(self):
        for turn in range(1, 4):
            self.turn(turn)
            if turn == 2:
                handle = self.cuda.handle_of(self.pool)[0]
                print(f"at the same address {self.ask('twice', handle)}", flush=True)
                self.turn(20)
            print(f"closes {self.ask('close')}", flush=True)
        self.turn(4)
        print(self.ask("end"), flush=True)


def main():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=backend, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    server = Server(ours)
    server.run()
    process.join(PATIENCE)
    print(f"with {process.exitcode}", flush=True)
    print(f"its first place afterwards: {server.tensor(0).sum().item():.0f}", flush=True)
    server.cuda.free(server.pool)
    print("freed", flush=True)


if __name__ == "__main__":
    main()
