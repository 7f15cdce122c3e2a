#!/usr/bin/env python3
"""Records what PyTorch's allocator is asked for as traces (README.md).

    record_torch.py [--out DIR] [--events 20000] [--only NAME...]

Needs a GPU and torch. The models have random weights; nothing is downloaded.
"""

import argparse
import pathlib
import random
import sys

import torch
from torch import nn
from torch.nn import functional

import trace_file
from torch_history import HistoryError, events_of, to_lines


class Block(nn.Module):
    """A layer of a transformer that keeps keys and values."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        if cache:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=not cache and length > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)))), (k, v)


class Transformer(nn.Module):
    def __init__(self, layers=8, width=1024, heads=16, words=32000):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, caches=None):
        x, kept = self.embed(tokens), []
        for number, block in enumerate(self.blocks):
            x, cache = block(x, caches[number] if caches else None)
            kept.append(cache)
        return self.head(x[:, -1:]), kept


class Convnet(nn.Module):
    """Residual stages, as image models have them."""

    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        stages, width = [], 64
        for wider in (64, 128, 256, 512):
            for step in range(2):
                stride = 2 if step == 0 and wider > 64 else 1
                stages.append(nn.ModuleList((
                    nn.Conv2d(width, wider, 3, stride=stride, padding=1),
                    nn.BatchNorm2d(wider),
                    nn.Conv2d(wider, wider, 3, padding=1),
                    nn.BatchNorm2d(wider),
                    nn.Conv2d(width, wider, 1, stride=stride))))
                width = wider
        self.stages = nn.ModuleList(stages)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.stem(x)), 2)
        for conv1, norm1, conv2, norm2, shortcut in self.stages:
            y = functional.relu(norm1(conv1(x)))
            x = functional.relu(norm2(conv2(y)) + shortcut(x))
        return self.head(x.mean(dim=(2, 3)))


@torch.inference_mode()
def transformer_decode(seed):
    """Generates for requests of different lengths, one batch after the other."""
    chance = random.Random(seed)
    model = Transformer().cuda().half()
    for _ in range(6):
        tokens = torch.randint(0, 32000, (chance.randint(1, 16), chance.randint(16, 512)), device="cuda")
        logits, caches = model(tokens)
        for _ in range(chance.randint(8, 48)):
            logits, caches = model(logits.argmax(dim=-1), caches)


@torch.inference_mode()
def transformer_batches(seed):
    """Scores batches of any size and length."""
    chance = random.Random(seed)
    model = Transformer().cuda().half()
    for _ in range(60):
        shape = (chance.choice((1, 1, 2, 4, 8, 32)), chance.randint(8, 768))
        model(torch.randint(0, 32000, shape, device="cuda"))


@torch.inference_mode()
def convnet(seed):
    """Classifies batches of images that come over a second stream."""
    chance = random.Random(seed)
    model, copies = Convnet().cuda().half().eval(), torch.cuda.Stream()
    for _ in range(80):
        side = chance.choice((160, 224, 224, 320))
        with torch.cuda.stream(copies):
            images = torch.rand(chance.choice((1, 2, 8, 32, 64)), 3, side, side, device="cuda",
                                dtype=torch.half)
        torch.cuda.current_stream().wait_stream(copies)
        images.record_stream(torch.cuda.current_stream())
        model(images)


def training(seed):
    """Steps of AdamW on a small transformer."""
    chance = random.Random(seed)
    model = Transformer(layers=4, width=512, heads=8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(12):
        tokens = torch.randint(0, 32000, (chance.choice((4, 8, 8, 16)), chance.choice((64, 128, 256))),
                               device="cuda")
        logits, _ = model(tokens)
        functional.cross_entropy(logits[:, 0], tokens[:, 0]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


PROGRAMS = {
    "torch-transformer-decode": transformer_decode,
    "torch-transformer-batches": transformer_batches,
    "torch-convnet": convnet,
    "torch-training": training,
}


def record(program, seed):
    torch.manual_seed(seed)
    program(seed)  # once without, so that libraries have their workspaces
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(stacks="python", context=None, max_entries=1_000_000)
    program(seed)
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    return events_of(snapshot, torch.cuda.current_device())


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=sorted(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        program = PROGRAMS[name]
        try:
            lines = to_lines(record(program, options.seed), options.events)
        except HistoryError as error:
            sys.exit(f"{name}: {error}")
        source = (f"torch {torch.__version__}, {torch.cuda.get_device_name()}, seed {options.seed}: "
                  f"{program.__doc__}")
        path = options.out / f"{name}.trace.gz"
        trace_file.write(path, source, lines)
        print(f"{path}: {len(lines)} events")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
