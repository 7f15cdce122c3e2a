"""The kinds of programs that know nothing of gmb, and which of them take turns."""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib

LLAMA = "llama"
ONNXRUNTIME = "onnxruntime"
USUAL = ("torch", "jax", "cupy")
ALL = (*USUAL, LLAMA, ONNXRUNTIME)
MAX_BATCH = 64


def llama_folder() -> pathlib.Path | None:
    """Of llama.cpp's server and its package gguf: LLAMA_CPP. None where they are not."""
    folder = pathlib.Path(os.environ.get("LLAMA_CPP", ""))
    has_both = os.access(folder / "llama-server", os.X_OK) and (folder / "gguf").is_dir()
    return folder.absolute() if os.environ.get("LLAMA_CPP") and has_both else None


def onnxruntime_lacks() -> str | None:
    """The reason that keeps it from being a kind here, if there is one."""
    try:
        importlib.import_module("onnx")
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        return str(error)
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        return None
    return f"onnxruntime {onnxruntime.__version__} has no CUDA provider"


def kinds_of(text: str) -> tuple[str, ...]:
    """Of a command line, as in torch,llama: in the order in which they take turns."""
    kinds = tuple(text.split(","))
    if unknown := [kind for kind in kinds if kind not in ALL]:
        raise argparse.ArgumentTypeError(
            f"there is no {', '.join(map(repr, unknown))}: the kinds are {', '.join(ALL)}"
        )
    if len(set(kinds)) < len(kinds):
        raise argparse.ArgumentTypeError("a kind is named twice")
    if LLAMA in kinds and llama_folder() is None:
        raise argparse.ArgumentTypeError(
            f"{LLAMA} needs llama.cpp: LLAMA_CPP names the folder of llama-server and gguf, "
            f"as tools/build-llama makes it, and is {os.environ.get('LLAMA_CPP') or 'not set'}"
        )
    if ONNXRUNTIME in kinds and (lacks := onnxruntime_lacks()):
        raise argparse.ArgumentTypeError(f"{ONNXRUNTIME} needs onnx and onnxruntime-gpu: {lacks}")
    return kinds


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kinds",
        type=kinds_of,
        help=f"of --servers programs, in turn: some of {', '.join(ALL)} [{','.join(USUAL)}]",
    )
