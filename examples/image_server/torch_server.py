#!/usr/bin/env python3
"""The image server with PyTorch: latents in, images of 1024 x 1024 out.

    torch_server.py --memory torch|gmb

With `torch` it is as one would write it, and knows nothing of gmb. With `gmb` (GMB_SOCKET_DIR)
its weights are sealed, and it says where it works: the lines with gmb.torch are the
difference.
"""

import argparse
import contextlib
import time

import torch
from image_http import OutOfMemory, serve

LATENT, CHANNELS, STAGES = 8192, 64, 7  # from 8 x 8 to 1024 x 1024
WAIT = 10.0


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Sequential(torch.nn.Linear(LATENT, LATENT), torch.nn.GELU(),
                                       torch.nn.Linear(LATENT, CHANNELS * 8 * 8))
        self.stages = torch.nn.ModuleList(
            torch.nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1) for _ in range(STAGES))
        self.out = torch.nn.Conv2d(CHANNELS, 3, 3, padding=1)

    def forward(self, latents):
        x = self.mix(latents).view(-1, CHANNELS, 8, 8)
        for stage in self.stages:
            x = torch.nn.functional.interpolate(x, scale_factor=2)
            x = torch.nn.functional.relu(stage(x))
        return self.out(x)


def load():
    torch.manual_seed(1)
    with torch.device("cuda"):
        return Decoder().eval()


class Model:
    """With torch's own memory."""

    name = "images"

    def __init__(self):
        self.net = load()

    @torch.inference_mode()
    def run(self, rows):
        latents = torch.cat([
            torch.randn(1, LATENT, generator=torch.Generator().manual_seed(row))
            for row in range(rows)
        ])
        images = self.net(latents.cuda())
        # The bits, as whole numbers: the same in any order.
        return images.view(torch.int32).sum(dtype=torch.int64).item()

    def scope(self):
        """Around what submits work; says whether the memory was away."""
        return contextlib.nullcontext(False)

    def infer(self, rows):
        began = time.perf_counter()
        try:
            with self.scope() as met_evicted:
                entered = time.perf_counter()
                checksum = self.run(rows)
        except torch.OutOfMemoryError as error:
            raise OutOfMemory(str(error).splitlines()[0]) from None
        return {"sum": checksum, "met_evicted": met_evicted,
                "wait_ms": (entered - began) * 1e3, "run_ms": (time.perf_counter() - entered) * 1e3}

    def held_bytes(self):
        return torch.cuda.memory_reserved()

    def empty_cache(self):
        torch.cuda.empty_cache()


class BrokerModel(Model):
    """With the broker's."""

    def __init__(self):
        import gmb.torch

        self.gmb = gmb
        self.client = gmb.torch.enable(program="image server", wait=WAIT)
        with gmb.torch.weights():
            self.net = load()

    @contextlib.contextmanager
    def scope(self):
        with contextlib.ExitStack() as stack:
            met_evicted = False
            try:  # what is there can be had sooner than it is restored
                stack.enter_context(self.gmb.torch.active(wait=0.005))
            except self.gmb.Error:
                met_evicted = True
                try:
                    stack.enter_context(self.gmb.torch.active(wait=WAIT))
                except self.gmb.Error as error:
                    raise OutOfMemory(str(error)) from None
            yield met_evicted

    def held_bytes(self):
        quota = self.client.quotas()[0]
        return quota.leased_bytes - quota.evicted_bytes

    def empty_cache(self):
        self.gmb.torch.trim()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", choices=("torch", "gmb"), required=True)
    given = parser.parse_args()
    torch.backends.cudnn.deterministic = True
    serve(BrokerModel() if given.memory == "gmb" else Model())


if __name__ == "__main__":
    main()
