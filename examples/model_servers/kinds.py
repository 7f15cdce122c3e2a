"""The kinds of models, and their sizes on the host device."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class HostSizes:
    """The sizes of a kind where there is no GPU: as bytes, for the host device."""

    weights_bytes: int
    bytes_per_item: int  # of activations, for each of a batch
    max_batch: int = 64


@dataclass(frozen=True)
class Kind:
    what: str
    host: HostSizes


KINDS = {
    "encoder": Kind(
        "a transformer that scores texts over a large vocabulary",
        HostSizes(weights_bytes=12 * MIB, bytes_per_item=MIB // 4),
    ),
    "convnet": Kind(
        "a convolutional network on large images",
        HostSizes(weights_bytes=10 * MIB, bytes_per_item=MIB // 4),
    ),
    "recommender": Kind(
        "a large table of embeddings, histories of users, and an MLP",
        HostSizes(weights_bytes=14 * MIB, bytes_per_item=MIB // 4),
    ),
}


def kind_of(number: int) -> str:
    """The kinds take turns."""
    return list(KINDS)[number % len(KINDS)]
