"""llama.cpp's own server: 1 GiB of weights in float16, and a few tokens for a request.

This process never uses the GPU: the server does, which is its child.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from llama_process import LlamaProcess
from program_kinds import MAX_BATCH, llama_folder

_LAYERS, _WIDTH, _CONTEXT, _ANSWER_TOKENS = 8, 2048, 512, 4
# Of the vocabulary of llama_model.py: where a text begins, and the first of 256 bytes.
_BEGIN, _BYTES = 1, 3


def question(batch: int) -> dict[str, Any]:
    """For /completion: so many tokens of a prompt, and four more."""
    return {
        "prompt": [_BEGIN, *(_BYTES + (place * 79 + batch) % 256 for place in range(batch))],
        "n_predict": _ANSWER_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": False,
        "n_probs": 8,
        # ASCII alone: it says no probabilities of what may become a part of a character.
        "logit_bias": [[token, False] for token in range(_BYTES + 128, _BYTES + 256)],
    }


def answer_sum(answer: dict[str, Any]) -> str:
    """Of each token, and of the likeliest ones at its place with all bits of their chances."""
    places = [
        [place["id"], [[one["id"], one["logprob"]] for one in place["top_logprobs"]]]
        for place in answer["completion_probabilities"]
    ]
    if len(places) != _ANSWER_TOKENS:
        raise RuntimeError(f"an answer of {len(places)} tokens: {answer}")
    return hashlib.sha256(json.dumps(places).encode()).hexdigest()[:16]


class LlamaModel:
    def __init__(self, seed: int) -> None:
        self.max_batch = MAX_BATCH
        self._seed = seed
        folder = llama_folder()
        if folder is None:
            raise RuntimeError("LLAMA_CPP names no folder with llama-server and gguf")
        self._folder = folder
        # Without a name, so that nothing is left of it when this process is killed.
        self._file = tempfile.TemporaryFile(prefix="gmb-llama.")
        self._server: LlamaProcess | None = None
        self._bytes = 0

    def warm(self) -> None:
        """Writes the model's file: the server makes its context when it has a model."""
        tests = pathlib.Path(__file__).resolve().parents[2] / "tests" / "gpu" / "preload"
        sys.path += [str(tests), str(self._folder)]
        import llama_model

        path = f"/proc/self/fd/{self._file.fileno()}"
        llama_model.make(path, _LAYERS, _WIDTH, _CONTEXT, self._seed)

    def load(self, share_bytes: int | None) -> None:
        if share_bytes is not None:
            raise ValueError("share_bytes: a split is the tenant's limit here")
        self._server = LlamaProcess(
            self._folder / "llama-server", self._file.fileno(), _CONTEXT
        )
        self._bytes = self._server.device_bytes

    def unload(self) -> None:
        server, self._server, self._bytes = self._server, None, 0
        if server is not None:
            server.end()

    def active(self) -> AbstractContextManager[object]:
        return nullcontext()

    def infer(self, batch: int) -> str:
        assert self._server is not None
        return answer_sum(self._server.complete(question(batch)))

    def held_bytes(self) -> int:
        """As it says of its buffers; its pool of temporary ones is not among them."""
        return self._bytes

    def peak_bytes(self) -> int:
        return self._bytes
