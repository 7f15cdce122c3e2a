"""The image server on the host device: what it answers, and how it ends."""

import pathlib
import sys

import pytest
from conftest import ask, ends, infer, wait_until

SERVER = pathlib.Path(__file__).resolve().parents[2] / "examples/image_server/host_server.py"


@pytest.fixture
def command(broker):
    return [sys.executable, "-B", SERVER, "--socket-dir", broker.tenant_dir("a"), "--gate",
            "--wait", "0.5"]


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"batch": 0}', '{"batch": -1}',
                                  '{"batch": true}', '{"batch": "1"}', '{"batch": 65}', b"\xff"])
def test_wrong_input_is_400_with_a_reason(start, command, body):
    server = start(command)
    answer = ask(server.port, "POST", "/infer", body)
    assert answer.code == 400
    assert "batch" in answer.json()["error"]
    assert infer(server.port, 1).code == 200


def test_a_batch_above_the_limit_is_503_and_the_server_goes_on(start, command):
    server = start(command)
    answer = infer(server.port, 16)
    assert answer.code == 503
    assert "limit" in answer.json()["error"]
    assert infer(server.port, 1).code == 200
    stats = ask(server.port, "GET", "/stats").json()
    assert (stats["requests"], stats["refused"]) == (2, 1)


def test_it_ends_with_0_and_gives_everything_back(start, command, broker):
    server = start(command)
    assert ask(server.port, "GET", "/healthz").text == "ok"
    assert ask(server.port, "GET", "/nothing").code == 404
    assert infer(server.port, 2).json()["met_evicted"] is False
    assert server.stop() == 0
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_without_a_broker_it_says_so(tmp_path):
    code, said = ends([sys.executable, "-B", SERVER, "--socket-dir", tmp_path / "nobody"])
    assert code != 0 and "nobody" in said
