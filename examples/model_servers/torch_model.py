"""A PyTorch model on a GPU, with weights made from a seed."""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager

import torch
from model_servers.model import Refused
from model_servers.networks import MAX_BATCH, build
from model_servers.torch_memory import Memory

_DTYPE = torch.bfloat16
_DEVICE = "cuda"


class TorchModel:
    def __init__(self, kind: str, size: str, seed: int, memory: Memory) -> None:
        self.max_batch = MAX_BATCH
        self._kind, self._size, self._seed = kind, size, seed
        self._memory = memory
        self._network: torch.nn.Module | None = None
        # The CPU's part is one thread; the GPU's answers are to be the same every time.
        torch.set_num_threads(1)
        torch.backends.cudnn.deterministic = True
        torch.cuda.init()  # type: ignore[no-untyped-call]

    def load(self, share_bytes: int | None) -> None:
        try:
            self._memory.prepare(share_bytes)
            with self._memory.loading():
                self._network = self._make(self._size)
            torch.cuda.synchronize()
        except (torch.OutOfMemoryError, Refused) as error:
            self._network = None
            text = _first_line(error)
        else:
            torch.cuda.reset_peak_memory_stats()
            return
        # Not in the handler: the error's frames hold tensors.
        self._give_back()
        raise Refused(text)

    def warm(self) -> None:
        """Makes the context and loads the kernels, on memory that is given back."""
        network = self._make("small" if self._size in ("full", "half") else self._size)
        for power in range(self.max_batch.bit_length()):
            self._run(network, 1 << power)
        del network
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()

    def unload(self) -> None:
        self._network = None
        self._give_back()

    def _give_back(self) -> None:
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        self._memory.trim()

    def active(self) -> AbstractContextManager[object]:
        return self._memory.active()

    def infer(self, batch: int) -> str:
        assert self._network is not None
        try:
            return self._run(self._network, batch)
        except torch.OutOfMemoryError as error:
            text = _first_line(error)
        raise Refused(text)

    @torch.inference_mode()
    def _run(self, network: torch.nn.Module, batch: int) -> str:
        scores = network(batch)
        # The bits of every score: an answer is right or wrong, not near.
        bits = scores.float().view(torch.int32).to(torch.int64)
        places = torch.arange(1, bits.numel() + 1, device=bits.device)
        return f"{int((bits * places).sum().item()) & 0xFFFFFFFFFFFFFFFF:016x}"

    def _make(self, size: str) -> torch.nn.Module:
        with torch.device("meta"):
            network = build(self._kind, size)
        generator = torch.Generator(device=_DEVICE).manual_seed(self._seed)
        for module in network.modules():
            for name, parameter in list(module.named_parameters(recurse=False)):
                weights = torch.empty(
                    parameter.shape,
                    dtype=_DTYPE,
                    device=_DEVICE,
                    memory_format=(
                        torch.channels_last if parameter.dim() == 4 else torch.contiguous_format
                    ),
                )
                with torch.no_grad():
                    weights.normal_(0.0, _deviation(parameter), generator=generator)
                setattr(module, name, torch.nn.Parameter(weights, requires_grad=False))
        return network.eval()

    def held_bytes(self) -> int:
        return self._memory.held_bytes()

    def peak_bytes(self) -> int:
        return torch.cuda.max_memory_reserved()


def _deviation(parameter: torch.nn.Parameter) -> float:
    """So that what goes through keeps its size."""
    inputs = parameter[0].numel() if parameter.dim() > 1 else parameter.numel()
    return float(inputs**-0.5)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]
