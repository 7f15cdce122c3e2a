"""The C++ model server: what it answers, and how it ends."""

import signal
import subprocess
import threading

import pytest
from conftest import ask, ends, infer, wait_until

UNIT = 16 << 10  # bytes: weights of 2 MiB


@pytest.fixture
def command(programs, broker):
    def of(tenant="a", model="writer", unit=UNIT, wait=5):
        return [*programs.command("model_server"), "--model", model, "--unit-bytes", str(unit),
                "--socket-dir", str(broker.tenant_dir(tenant)), "--wait", str(wait)]

    return of


def test_it_answers_by_the_protocol(start, command):
    server = start(command())
    health = ask(server.port, "GET", "/healthz")
    assert (health.code, health.text) == (200, "ok")
    answer = infer(server.port, 2).json()
    assert answer["model"] == "writer" and answer["batch"] == 2
    assert answer["met_evicted"] is False
    assert answer["run_ms"] > 0 and answer["wait_ms"] >= 0
    stats = ask(server.port, "GET", "/stats").json()
    assert stats["model"] == "writer"
    assert (stats["requests"], stats["refused"]) == (1, 0)
    assert stats["held_bytes"] >= 128 * UNIT


def test_the_sum_is_the_same_each_time_and_another_for_each_batch_and_model(start, command):
    server = start(command())
    other = start(command(tenant="b", model="search"))
    sums = {rows: infer(server.port, rows).json()["sum"] for rows in (1, 2, 3)}
    assert len(set(sums.values())) == 3
    assert all(infer(server.port, rows).json()["sum"] == sums[rows] for rows in sums)
    assert infer(other.port, 1).json()["sum"] != sums[1]


@pytest.mark.parametrize("body", [
    "", "{", "[]", "17", '"batch"', "{}", '{"batch": 0}', '{"batch": -1}', '{"batch": 1.5}',
    '{"batch": "1"}', '{"batch": null}', '{"batch": 4097}', '{"batch": 1e30}',
    '{"batch": 18446744073709551615}', '{"batch": 18446744073709551616}', "[" * 30000,
    b"\xff\xfe", '{"batch": [1]}',
])
def test_wrong_input_is_400_with_a_reason(start, command, body):
    server = start(command())
    answer = ask(server.port, "POST", "/infer", body)
    assert answer.code == 400
    assert "batch" in answer.json()["error"]
    assert infer(server.port, 1).code == 200


def test_a_batch_above_the_limit_is_503_with_the_brokers_reason(start, command):
    server = start(command())
    assert infer(server.port, 1).code == 200
    answer = infer(server.port, 4096)
    assert answer.code == 503
    assert answer.json()["reason"] == "TENANT_LIMIT"
    assert infer(server.port, 1).code == 200
    stats = ask(server.port, "GET", "/stats").json()
    assert (stats["requests"], stats["refused"]) == (3, 1)


def test_a_pool_that_others_hold_is_503_and_the_server_goes_on(start, command, broker):
    server = start(command(wait=0.2))
    other = subprocess.Popen(broker.command("hold", "--tenant", "b", "--bytes", "100MiB"),
                             stdout=subprocess.PIPE, text=True)
    try:
        assert any("holding" in line for line in other.stdout)
        answer = infer(server.port, 80)
        assert answer.code == 503
        assert answer.json()["reason"] == "POOL_EXHAUSTED"
        assert infer(server.port, 1).code == 200
    finally:
        other.terminate()
        other.wait()
        other.stdout.close()
    assert infer(server.port, 80).code == 200


def test_an_evicted_model_comes_back_and_says_so(start, command, broker):
    server = start(command())
    before = infer(server.port, 1).json()
    taken = lambda: broker.run("reclaim", "a", "--bytes", "64MiB", "--wait", "5s")  # noqa: E731
    away = lambda: broker.tenant("a")["resident_bytes"] == 0  # noqa: E731
    wait_until(lambda: taken() and away())
    assert ask(server.port, "GET", "/stats").json()["held_bytes"] == 0
    after = infer(server.port, 1).json()
    assert after["met_evicted"] is True
    assert after["sum"] == before["sum"]


def test_unknown_paths_and_methods_are_refused(start, command):
    server = start(command())
    assert ask(server.port, "GET", "/nothing").code == 404
    assert "/infer" in ask(server.port, "GET", "/nothing").json()["error"]
    assert ask(server.port, "GET", "/infer").code in (404, 405)
    assert ask(server.port, "POST", "/infer", "x" * (1 << 20)).code == 413
    assert infer(server.port, 1).code == 200


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_is_under_way_end(start, command, broker, how):
    server = start(command(tenant="b", unit=256 << 10))  # some 100 ms a batch
    answers = []
    caller = threading.Thread(target=lambda: answers.append(infer(server.port, 8)))
    caller.start()
    wait_until(lambda: ask(server.port, "GET", "/stats").json()["requests"] == 1)
    server._process.send_signal(how)
    caller.join()
    assert answers[0].code == 200
    assert server._process.wait(timeout=30) == 0
    wait_until(lambda: broker.pool()["granted_bytes"] == 0)


def test_the_broker_that_is_gone_is_503(start, command, broker):
    server = start(command())
    assert infer(server.port, 1).code == 200
    broker._process.kill()
    broker._process.wait()
    wait_until(lambda: ask(server.port, "GET", "/healthz").code == 503)
    assert infer(server.port, 1000).code == 503
    assert server.stop() == 0


def test_what_cannot_be_served_ends_with_an_error(programs, command, tmp_path):
    server = programs.command("model_server")
    code, said = ends([*server, "--model", "writer", "--socket-dir", str(tmp_path / "nobody")])
    assert code == 1 and "nobody" in said
    code, said = ends(command(model="poet"))
    assert code == 1 and "classifier" in said
    code, said = ends(command(unit=12345))
    assert code == 1 and "unit" in said
    code, said = ends(command(unit=256 << 10, tenant="small", wait=0.1))
    assert code == 1 and "limit" in said
    assert ends(server)[0] != 0
    assert ends([*server, "--model", "writer", "--port", "70000"])[0] != 0


def test_a_port_that_is_taken_ends_with_an_error(start, command):
    server = start(command())
    code, said = ends([*command(tenant="b"), "--port", str(server.port)])
    assert code == 1 and "port" in said


def test_the_client_finds_a_wrong_sum(programs, start, command):
    server = start(command(unit=32 << 10))
    done = subprocess.run(
        [*programs.command("model_client"), f"--server=search={server.port}", "--share-bytes", "1",
         "--unit-bytes", str(32 << 10), "--rounds", "1", "--together", "0", "--burst", "2"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FAIL" in done.stdout and "sum" in done.stdout
    for wrong in ("writer", "writer=0", "writer=x", "poet=80"):
        code, _ = ends([*programs.command("model_client"), f"--server={wrong}", "--share-bytes", "1"])
        assert code == 2
