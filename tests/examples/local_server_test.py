"""The examples' servers as child processes: those that serve, and those that do not."""

import signal
import sys
import time

import pytest
from local_server import Server, ServerError, stop_all

SERVES = "print('listening on 127.0.0.1:4711', flush=True)\n"
STAYS = "import signal\nsignal.pause()\n"


def server(script, **options):
    return Server("the server", [sys.executable, "-c", script], **options)


def test_it_serves_from_the_with_on_and_ends_with_it():
    with server(f"print('hello')\n{SERVES}{STAYS}") as started:
        assert started.port == 4711
    assert started.wait() == -signal.SIGTERM


def test_before_it_listens_it_has_no_port():
    started = server(STAYS)
    with pytest.raises(ServerError, match="the server does not listen yet"):
        assert started.port
    with pytest.raises(ServerError, match="the server does not listen in time"):
        started.await_port(time.monotonic() + 0.1)
    assert started.stop() == -signal.SIGTERM


def test_one_that_ends_says_with_what_and_why(tmp_path):
    log = tmp_path / "log"
    script = "import sys\nfor n in range(20): print('reason', n, file=sys.stderr)\nsys.exit(3)"
    with pytest.raises(ServerError) as raised, server(script, log=log):
        pass
    said = str(raised.value).splitlines()
    assert said[0] == "the server does not serve; it ended with 3"
    assert said[1:] == [f"reason {n}" for n in range(8, 20)]


def test_what_it_prints_later_does_not_stop_it():
    with server(f"{SERVES}for _ in range(20000): print('x' * 100)\n") as started:
        assert started.wait() == 0


def test_its_environment_is_ours_and_more(monkeypatch):
    monkeypatch.setenv("OURS", "1")
    script = f"import os\n{SERVES}raise SystemExit(int(os.environ['OURS'] + os.environ['MORE']))"
    with server(script, environment={"MORE": "2"}) as started:
        assert started.wait() == 12


def test_one_that_does_not_end_is_killed():
    deaf = server(f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SERVES}{STAYS}")
    plain = server(f"{SERVES}{STAYS}")
    for one in (deaf, plain):
        one.await_port()
    assert stop_all([deaf, plain], 0.5) == [-signal.SIGKILL, -signal.SIGTERM]
