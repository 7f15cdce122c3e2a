"""The servers' queue and HTTP, with a model that the test decides."""

import concurrent.futures
import contextlib
import http.client
import json
import threading
import time

import pytest
from model_servers import worker as worker_module
from model_servers.http_front import Front
from model_servers.model import Refused
from model_servers.worker import Worker


class ScriptedModel:
    """Refuses the first `refusals` requests; entering waits for `gate`."""

    max_batch = 8

    def __init__(self):
        self.refusals, self.final, self.loads, self.scopes = 0, False, [], 0
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()

    def warm(self):
        pass

    def load(self, share_bytes):
        if share_bytes == 1:
            raise Refused("the share is too small")
        self.loads.append(share_bytes)

    def unload(self):
        self.loads.append("unload")

    @contextlib.contextmanager
    def active(self):
        self.waiting.set()
        assert self.gate.wait(60)
        self.scopes += 1
        yield

    def infer(self, batch):
        if self.refusals > 0:
            self.refusals -= 1
            raise Refused("the pool is full", final=self.final)
        return f"s{batch}"

    def held_bytes(self):
        return 5

    def peak_bytes(self):
        return 7


@pytest.fixture
def model():
    return ScriptedModel()


@pytest.fixture
def worker(model, monkeypatch):
    monkeypatch.setattr(worker_module, "_BACK_OFF_SECONDS", (0.0, 0.0))
    # The test machine may be slow; a restore is what a test says.
    monkeypatch.setattr(worker_module, "RESTORED_SECONDS", 60.0)
    started = Worker(model)
    yield started
    started.stop()


def test_a_refusal_is_tried_again_in_a_scope_of_its_own(model, worker):
    model.refusals = 2
    assert worker.infer(4).sum == "s4"
    assert model.scopes == 3 and worker.refused == 0


def test_the_time_of_attempts_that_failed_is_told(model, worker, monkeypatch):
    assert worker.infer(4).retried_ms == 0
    model.refusals = 1
    monkeypatch.setattr(worker_module, "_BACK_OFF_SECONDS", (0.02, 0.02))
    assert worker.infer(4).retried_ms >= 20


def test_the_time_in_the_queue_and_its_end_are_told(model, worker):
    began = time.time()
    model.gate.clear()
    with concurrent.futures.ThreadPoolExecutor(2) as callers:
        asked = [callers.submit(worker.infer, 1) for _ in range(2)]
        assert model.waiting.wait(60)
        while worker.waiting() == 0:  # the other one
            time.sleep(0.001)
        queued_at_least = 0.02
        time.sleep(queued_at_least)
        model.gate.set()
        first, second = sorted((job.result() for job in asked), key=lambda done: done.began_at)
    assert second.queue_ms >= queued_at_least * 1000
    assert began <= first.began_at < second.began_at - queued_at_least / 2


@pytest.mark.parametrize("final,scopes", [(False, 5), (True, 1)])
def test_in_the_end_it_is_refused(model, worker, final, scopes):
    model.refusals, model.final = 100, final
    with pytest.raises(Refused, match="the pool is full"):
        worker.infer(1)
    assert model.scopes == scopes and worker.refused == 1


def test_who_stood_in_the_queue_meanwhile_met_the_eviction_too(model, worker, monkeypatch):
    monkeypatch.setattr(worker_module, "RESTORED_SECONDS", 0.0)  # every entering is a restore
    model.gate.clear()
    with concurrent.futures.ThreadPoolExecutor(2) as callers:
        asked = [callers.submit(worker.infer, 1) for _ in range(2)]
        assert model.waiting.wait(60)
        while worker.waiting() == 0:  # the other one
            threading.Event().wait(0.001)
        model.gate.set()
        found = [future.result() for future in asked]
    assert all(done.met_evicted for done in found)
    monkeypatch.setattr(worker_module, "RESTORED_SECONDS", 60.0)
    assert not worker.infer(1).met_evicted


@pytest.fixture
def front(model, worker):
    with Front(0, "m00", model, worker) as started:
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield started
        started.shutdown()


def ask(front, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", front.server_port, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_it_answers_once_it_is_loaded(front):
    assert ask(front, "GET", "/healthz")[0] == 503
    assert ask(front, "POST", "/infer", '{"batch": 1}')[0] == 503
    assert ask(front, "POST", "/load", "{}")[0] == 200
    assert ask(front, "GET", "/healthz") == (200, b"ok")
    status, said = ask(front, "POST", "/infer", '{"batch": 2}')
    said = json.loads(said)
    assert status == 200 and said["sum"] == "s2" and said["model"] == "m00"
    assert {"batch", "met_evicted", "wait_ms", "run_ms"} <= set(said)
    assert json.loads(ask(front, "GET", "/stats")[1]) == {
        "model": "m00",
        "requests": 1,
        "refused": 0,
        "held_bytes": 5,
        "peak_bytes": 7,
    }


@pytest.mark.parametrize(
    "body",
    ['{"batch": 0}', '{"batch": 9}', '{"batch": "1"}', "{}", "[]", "{", '{"batch": 1.5}']
    + ['{"batch": true}'],
)
def test_what_is_no_batch_is_refused(front, body):
    assert ask(front, "POST", "/load", "{}")[0] == 200
    status, said = ask(front, "POST", "/infer", body)
    assert status == 400 and "error" in json.loads(said)
    assert ask(front, "POST", "/infer", '{"batch": 1}')[0] == 200


def test_other_paths_and_a_load_that_fails(front, model):
    assert ask(front, "GET", "/")[0] == 404
    assert ask(front, "POST", "/", "{}")[0] == 404
    assert ask(front, "POST", "/load", '{"share_bytes": 1}')[0] == 503
    assert ask(front, "GET", "/healthz")[0] == 503
    assert ask(front, "POST", "/load", '{"share_bytes": 2}')[0] == 200
    assert ask(front, "POST", "/load", '{"share_bytes": 3}')[0] == 200
    assert model.loads == [2, "unload", 3]


def test_a_connection_is_kept(front):
    ask(front, "POST", "/load", "{}")
    connection = http.client.HTTPConnection("127.0.0.1", front.server_port, timeout=60)
    for _ in range(3):
        connection.request("POST", "/infer", '{"batch": 1}')
        response = connection.getresponse()
        assert response.status == 200 and response.read()
    connection.close()
