"""bench/consolidation's kind "onnxruntime": where it is one, and its model on the CPU, in small."""

import argparse
import pathlib
import sys
import types

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "consolidation"
sys.path.insert(0, str(BENCH))

from model_servers.model import Refused  # noqa: E402
from program_kinds import kinds_of  # noqa: E402


def installed(monkeypatch, *providers):
    fake = types.SimpleNamespace(
        get_available_providers=lambda: list(providers), __version__="1.2.3"
    )
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    monkeypatch.setitem(sys.modules, "onnx", types.SimpleNamespace())


def test_it_is_a_kind_where_there_is_its_cuda_provider(monkeypatch):
    installed(monkeypatch, "CUDAExecutionProvider", "CPUExecutionProvider")
    assert kinds_of("onnxruntime,torch") == ("onnxruntime", "torch")


def test_without_its_cuda_provider_it_is_none(monkeypatch):
    installed(monkeypatch, "CPUExecutionProvider")
    with pytest.raises(argparse.ArgumentTypeError, match="1.2.3 has no CUDA provider"):
        kinds_of("torch,onnxruntime")


def test_where_it_is_not_installed_it_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(argparse.ArgumentTypeError, match="onnxruntime-gpu: .*onnx"):
        kinds_of("onnxruntime")


class Device:
    """Stands for a GPU's memory: each look at it finds less, as the test says."""

    def __init__(self):
        self.free, self.taken = 1 << 40, []

    def free_bytes(self):
        self.free -= self.taken.pop(0) if self.taken else 0
        return self.free


@pytest.fixture
def made(monkeypatch):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx_encoder import Shape
    from onnxruntime_model import OnnxModel, Place

    def one(seed, device=Device()):
        shape = Shape(layers=2, width=64, heads=4, words=500, tokens=8)
        model = OnnxModel(seed, shape, Place("CPUExecutionProvider", device.free_bytes))
        model.warm()
        return model

    return one


def test_an_answer_follows_from_the_weights_and_the_batch(made):
    answers = {}
    for seed, name in ((1, "first"), (2, "other"), (1, "again")):
        model = made(seed)
        model.load(None)
        answers[name] = [model.infer(batch) for batch in (64, 8, 1)]
        assert [model.infer(batch) for batch in (1, 8, 64)] == answers[name][::-1]
    assert answers["first"] == answers["again"]
    assert len({*answers["first"], *answers["other"]}) == 6


def test_it_holds_what_its_load_and_the_first_requests_took(made):
    device = Device()
    model = made(1, device)
    device.taken = [0, 100]
    model.load(None)
    assert (model.held_bytes(), model.peak_bytes()) == (100, 100)
    device.taken = [0, 20]
    before = model.infer(64)
    device.taken = [0, 7]
    assert model.infer(64) == before  # no look
    device.taken = [0, 5]
    model.infer(1)
    assert (model.held_bytes(), model.peak_bytes()) == (125, 125)
    model.unload()
    assert (model.held_bytes(), model.peak_bytes()) == (0, 125)
    model.load(None)
    assert model.infer(64) == before


def test_without_memory_the_load_is_refused_and_may_be_tried_again(made, monkeypatch):
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

    model = made(1)
    opened, texts = onnxruntime.InferenceSession, ["Failed to allocate memory for it", "no kernel"]

    def failing(*arguments, **named):
        if texts:
            raise RuntimeException(texts.pop(0))
        return opened(*arguments, **named)

    monkeypatch.setattr(onnxruntime, "InferenceSession", failing)
    with pytest.raises(Refused, match="allocate memory"):
        model.load(None)
    with pytest.raises(RuntimeException, match="no kernel"):
        model.load(None)
    model.load(None)
    assert model.infer(1) == model.infer(1)
