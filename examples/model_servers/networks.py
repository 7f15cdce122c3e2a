"""Three networks of about 2 GiB in bfloat16, whose largest batch takes 1.5 to 2 GiB more.

Inputs are made on the device from the batch's size: what is measured is the model and its
memory, not the way that the input came. forward(batch) gives one score an item.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class EncoderSize:
    width: int
    layers: int
    vocabulary: int
    tokens: int  # of a text


@dataclass(frozen=True)
class ConvnetSize:
    layers: int
    channels: int
    stem: int
    pixels: int  # of a side


@dataclass(frozen=True)
class RecommenderSize:
    rows: int
    width: int
    history: int
    users: int  # for one of a batch
    hidden: int


# "half" is a smaller model, of 1 GiB. "small" has the same widths, so that it loads the same kernels, in few layers.
_ENCODERS = {
    "full": EncoderSize(width=4096, layers=4, vocabulary=65536, tokens=64),
    "half": EncoderSize(width=4096, layers=2, vocabulary=32768, tokens=48),
    "small": EncoderSize(width=4096, layers=1, vocabulary=65536, tokens=64),
    "tiny": EncoderSize(width=64, layers=2, vocabulary=512, tokens=8),
}
_CONVNETS = {
    "full": ConvnetSize(layers=27, channels=2048, stem=64, pixels=256),
    "small": ConvnetSize(layers=1, channels=2048, stem=64, pixels=256),
    "tiny": ConvnetSize(layers=2, channels=32, stem=8, pixels=32),
}
_RECOMMENDERS = {
    "full": RecommenderSize(rows=3_700_000, width=256, history=384, users=64, hidden=8192),
    "small": RecommenderSize(rows=100_000, width=256, history=384, users=64, hidden=8192),
    "tiny": RecommenderSize(rows=1000, width=16, history=8, users=4, hidden=32),
}


MAX_BATCH = 64


def build(kind: str, size: str) -> nn.Module:
    if kind == "encoder":
        return Encoder(_ENCODERS[size])
    if kind == "convnet":
        return Convnet(_CONVNETS[size])
    return Recommender(_RECOMMENDERS[size])


class _Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 128)
        self.joined = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        texts, tokens, width = x.shape
        normed = F.layer_norm(x, (width,))
        parts = self.joined(normed).view(texts, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(texts, tokens, width))
        changed: Tensor = self.down(F.gelu(self.up(F.layer_norm(x, (width,)))))
        return x + changed


class Encoder(nn.Module):
    """The mean log probability of each text: the scores over the vocabulary are what is large."""

    def __init__(self, size: EncoderSize) -> None:
        super().__init__()
        self.size = size
        self.words = nn.Embedding(size.vocabulary, size.width)
        self.layers = nn.ModuleList(_Layer(size.width) for _ in range(size.layers))

    def forward(self, batch: int) -> Tensor:
        size, device = self.size, self.words.weight.device
        place = torch.arange(batch * size.tokens, device=device)
        words = (place * 7919 + batch).remainder(size.vocabulary).view(batch, size.tokens)
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
        scores: Tensor = F.linear(F.layer_norm(x, (size.width,)), self.words.weight)
        chances = torch.log_softmax(scores, -1, dtype=torch.float32)
        following = words.roll(-1, 1).unsqueeze(-1)
        return chances.gather(-1, following).mean((1, 2))


class Convnet(nn.Module):
    """Large images at first, then many channels: activations here, weights there."""

    def __init__(self, size: ConvnetSize) -> None:
        super().__init__()
        self.size = size
        self.first = nn.Conv2d(3, size.stem, 3, padding=1, bias=False)
        self.second = nn.Conv2d(size.stem, size.stem, 3, padding=1, bias=False)
        self.widen = nn.Conv2d(size.stem, size.channels, 1, bias=False)
        self.body = nn.ModuleList(
            nn.Conv2d(size.channels, size.channels, 3, padding=1, bias=False)
            for _ in range(size.layers)
        )

    def forward(self, batch: int) -> Tensor:
        size, weight = self.size, self.first.weight
        count = batch * 3 * size.pixels * size.pixels
        image = torch.arange(count, device=weight.device).remainder(251).to(weight.dtype)
        x = (image / 125.5 - 1.0).view(batch, 3, size.pixels, size.pixels)
        x = F.relu(self.first(x.contiguous(memory_format=torch.channels_last)))
        x = F.relu(self.second(x))
        x = self.widen(F.avg_pool2d(x, size.pixels // 8))
        for layer in self.body:
            x = x + F.relu(layer(x)) * 0.5
        scores: Tensor = x.float().mean((1, 2, 3))
        return scores


class Recommender(nn.Module):
    """Attention over each user's history of items, and an MLP."""

    def __init__(self, size: RecommenderSize) -> None:
        super().__init__()
        self.size = size
        self.items = nn.Embedding(size.rows, size.width)
        self.mlp = nn.ModuleList(
            (
                nn.Linear(2 * size.width, size.hidden, bias=False),
                nn.Linear(size.hidden, size.hidden, bias=False),
                nn.Linear(size.hidden, 1, bias=False),
            )
        )

    def forward(self, batch: int) -> Tensor:
        size, device = self.size, self.items.weight.device
        users = batch * size.users
        place = torch.arange(users * size.history, device=device)
        seen = self.items((place * 2654435761 + batch).remainder(size.rows))
        seen = seen.view(users, size.history, size.width)
        place = torch.arange(users, device=device)
        asked = self.items((place * 40503 + 7).remainder(size.rows))
        weights = torch.softmax((seen * asked.unsqueeze(1)).sum(-1, dtype=torch.float32), -1)
        taste = (seen * weights.unsqueeze(-1).to(seen.dtype)).sum(1)
        x = torch.cat((taste, asked), -1)
        for layer in list(self.mlp)[:-1]:
            x = F.relu(layer(x))
        scores: Tensor = self.mlp[-1](x).view(batch, size.users).float().mean(1)
        return scores
