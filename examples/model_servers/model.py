"""The server's interface to a model, on any device."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class Refused(Exception):
    """Memory did not suffice. The text is the broker's reason, or the framework's.

    `final`: it is no use to try again.
    """

    def __init__(self, text: str, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


class Model(Protocol):
    """One model with its memory. All calls but `held_bytes` come from one thread."""

    max_batch: int

    def warm(self) -> None:
        """Makes what a process needs once, whatever is loaded; on memory that is given back."""

    def load(self, share_bytes: int | None) -> None:
        """Makes the weights. `share_bytes`: of the device, when it is split. May raise Refused."""

    def unload(self) -> None:
        """Gives all memory back."""

    def active(self) -> AbstractContextManager[object]:
        """Around infer(): entering brings memory back that was away. May raise Refused."""

    def infer(self, batch: int) -> str:
        """The answer's checksum: the same for the same weights and batch. May raise Refused."""

    def held_bytes(self) -> int:
        """Device memory held now. From any thread."""

    def peak_bytes(self) -> int:
        """The most that was held since load()."""
