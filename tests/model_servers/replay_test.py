"""The replay against servers whose answers the test decides."""

import asyncio
import http.server
import json
import pathlib
import subprocess
import sys
import threading

import pytest
import load.answer
from load.answer import read_answers, write_answers
from load.http_client import HttpClient, NotAnsweredError
from load.replay import Target, replay
from load.summary import summarise
from load.trace import Request, Trace, write_trace


@pytest.fixture
def serve():
    """serve(answer): answer(body) -> (status, JSON) of a server; where it is."""
    started = []

    def start(answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, said = answer(body)
                content = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return Target("127.0.0.1", server.server_port)

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def answer_of(body, **more):
    return 200, {"model": "m", "batch": body["batch"], "sum": f"s{body['batch']}", **more}


def trace_of(*times, batch=1):
    return Trace(tuple(Request(t, "m", batch) for t in times))


def test_requests_are_sent_when_due_though_none_is_answered(serve):
    everybody = threading.Barrier(5)

    def answer(body):
        everybody.wait(timeout=60)  # one that waits for answers would never get here five times
        return answer_of(body)

    answers = replay(trace_of(0, 10, 20, 30, 40), {"m": serve(answer)})
    assert len(answers) == 5 and all(a.ok for a in answers)
    # The first was answered after the last was due.
    assert max(a.latency_ms for a in answers) >= 40
    assert all(a.latency_ms >= 40 - a.due_ms for a in answers)


def test_answers_are_told_apart(serve):
    def answer(body):
        if body["batch"] == 2:
            return 503, {"error": "the pool is full"}
        return answer_of(body, met_evicted=body["batch"] == 4, wait_ms=7.5, run_ms=1.5)

    trace = Trace(tuple(Request(float(n), "m", n) for n in (1, 2, 4, 8)))
    expected = {("m", 1): "s1", ("m", 4): "s4", ("m", 8): "another"}
    answers = sorted(replay(trace, {"m": serve(answer)}, expected), key=lambda a: a.batch)
    assert [a.ok for a in answers] == [True, False, True, True]
    assert [a.right for a in answers] == [True, True, True, False]
    assert [a.met_evicted for a in answers] == [False, False, True, False]
    found = summarise(answers)
    assert (found["ok"], found["refused"], found["wrong"], found["met_evicted"]) == (3, 1, 1, 1)
    assert found["errors"] == {"the pool is full": 1}
    assert found["restore_wait_ms"] == {"p50": 7.5, "p99": 7.5, "max": 7.5}
    assert found["resident_latency_ms"]["count"] == 2


def test_who_does_not_answer_in_time_has_refused(serve):
    release = threading.Event()

    def answer(body):
        release.wait(timeout=60)
        return answer_of(body)

    answers = replay(trace_of(0), {"m": serve(answer)}, answer_within=0.2)
    release.set()
    assert not answers[0].ok and "no answer within 0.2 s" in answers[0].error


def test_a_server_that_goes_away_is_an_error_of_the_request(serve):
    def answer(body):
        raise ConnectionError("the test's server hangs up")

    answers = replay(trace_of(0, 5), {"m": serve(answer)})
    assert [a.ok for a in answers] == [False, False]


@pytest.mark.parametrize("told", [False, True])
def test_a_kept_connection_that_was_closed_costs_no_request(told):
    """Told: the client has seen the end before it sends. Not: it comes instead of an answer."""
    connections = []

    async def serve_one(reader, writer):
        connections.append(writer)
        closes = len(connections) == 1
        while (await reader.readuntil(b"{}")) and not (closes and not told):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            if closes:
                break
        if closes:
            writer.close()

    async def ask():
        server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
        client = HttpClient("127.0.0.1", server.sockets[0].getsockname()[1])
        if told:
            assert await client.post("/infer", {}) == (200, {})
            (reader, _), = client._idle
            while not reader.at_eof():
                await asyncio.sleep(0)
        else:
            await client.connect_ahead()
        for _ in range(2):
            assert await client.post("/infer", {}) == (200, {})
        assert len(connections) == 2
        client.close()
        server.close()

    asyncio.run(asyncio.wait_for(ask(), 60))


def test_a_new_connection_without_an_answer_is_not_tried_again():
    connections = []

    async def hang_up(reader, writer):
        connections.append(writer)
        await reader.readuntil(b"{}")
        writer.close()

    async def ask():
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        client = HttpClient("127.0.0.1", server.sockets[0].getsockname()[1])
        with pytest.raises(NotAnsweredError):
            await client.post("/infer", {})
        assert len(connections) == 1
        server.close()

    asyncio.run(asyncio.wait_for(ask(), 60))


def test_a_model_without_a_server_is_named(serve):
    with pytest.raises(ValueError, match="no server for m"):
        replay(trace_of(0), {})


def test_answers_are_stored(serve, tmp_path):
    answers = replay(trace_of(0, 1), {"m": serve(answer_of)})
    write_answers(tmp_path / "a.jsonl", answers)
    assert read_answers(tmp_path / "a.jsonl") == answers


def test_the_command_finds_answers_that_differ(serve, tmp_path):
    asked = []

    def answer(body):
        asked.append(body)
        return answer_of(body, sum=f"s{len(asked) // 3}")

    write_trace(tmp_path / "t", trace_of(0, 5))
    place = serve(answer)
    command = [
        *(sys.executable, "-B", pathlib.Path(load.answer.__file__).with_name("replay_trace.py")),
        *("--trace", tmp_path / "t", "--target", f"m={place.host}:{place.port}"),
    ]
    first = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert first.returncode == 0 and json.loads(first.stdout)["all"]["ok"] == 2
    asked.pop()
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1 and "different answers: m, batch 1" in second.stderr


def test_a_summary_of_nothing():
    found = summarise([])
    assert found["requests"] == 0 and found["latency_ms"] is None
