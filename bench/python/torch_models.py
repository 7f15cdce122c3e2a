"""The model whose inference is measured."""

from __future__ import annotations

import torch


class Block(torch.nn.Module):
    """A layer of a decoder, as language models have it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        q, k, v = (
            part.view(rows, length, self.heads, 64).transpose(1, 2)
            for part in self.qkv(self.norm(x)).chunk(3, dim=-1)
        )
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def make_model(width: int, layers: int) -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(*(Block(width) for _ in range(layers))).half().eval()


def make_input(rows: int, length: int, width: int) -> torch.Tensor:
    torch.manual_seed(2)
    return torch.randn(rows, length, width).half()
