"""bench/consolidation's random load: its plan, its commands, and 20 s of it without a GPU."""

import json
import os
import pathlib
import subprocess
import sys
import time
from collections import Counter

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "consolidation"
sys.path.insert(0, str(BENCH))

import fleet  # noqa: E402
from broker_moves import moves_of  # noqa: E402
from conditions import Conditions  # noqa: E402
from load.trace import Trace  # noqa: E402
from local_broker import Programs  # noqa: E402
from outages import Outages  # noqa: E402
from random_plan import Shape, make_plan  # noqa: E402
from servers import PROGRAMS, launcher  # noqa: E402

SEED = 13


def test_a_plan_follows_from_its_seed_alone():
    shape = Shape(seed=SEED, models=6, seconds=480)
    assert make_plan(shape) == make_plan(shape)
    assert make_plan(shape) != make_plan(Shape(seed=SEED + 1, models=6, seconds=480))


def test_a_plan_has_all_kinds_of_actions_in_time():
    plan = make_plan(Shape(seed=SEED, models=6, seconds=480))
    counts = Counter(action.what for action in plan)
    assert 480 / 25 * 0.7 < counts["kill"] < 480 / 25 * 1.4
    assert 480 / 60 * 0.6 < counts["kill_broker"] < 480 / 60 * 1.5
    assert counts.keys() == {"request", "kill", "stop", "reclaim", "limit", "kill_broker"}
    assert {action.amount for action in plan if action.what == "request"} <= {
        1 << power for power in range(7)
    }
    assert all(0.2 <= a.seconds <= 5 for a in plan if a.what == "stop")
    assert max(action.at for action in plan if action.what == "kill") < 450


def test_no_broker_is_killed_where_that_is_off():
    plan = make_plan(Shape(seed=SEED, models=6, seconds=480, kill_broker=0))
    assert not [action for action in plan if action.what == "kill_broker"]


def test_a_program_is_started_as_in_the_figure_each_time(monkeypatch, tmp_path):
    started = []

    class NotStarted:
        def __init__(self, name, command, environment, log):
            started.append((name, command, environment, log.name))
            self.name = name

    monkeypatch.setattr(fleet, "ModelServer", NotStarted)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/own")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    conditions = Conditions(
        **{"device": "cuda", "size": "full", "card_bytes": 0, "seconds": 1, "trace": Trace(())},
        programs=Programs(),
        out=tmp_path,
        servers=PROGRAMS,
        alike_again=True,
    )

    def gmb(*words):
        return ["gmb", "--socket-dir", "/s", *words]

    servers = fleet.Fleet(conditions, "gmb", 2, "/s", launcher(gmb))
    servers.start_again(1, 2)
    name, command, environment, log = started[1]
    assert (name, log) == ("m01", "m01.log")
    run = ["run", "--quiet", "--tenant", "m01", "--park-after", "50ms", "--"]
    program = [sys.executable, "-B", str(BENCH / "program_server.py")]
    own = ["--name", "m01", "--kind", "jax", "--seed", "2", "--wait-for-load"]
    assert command == gmb(*run, "env", "LD_LIBRARY_PATH=/own", *program, *own)
    assert environment["XLA_FLAGS"] == "--xla_gpu_deterministic_ops=true"
    assert started[2] == (name, command, environment, "m01.2.log")


def test_an_outage_excuses_what_was_under_way_alone():
    outages = Outages()
    assert not outages.any_since(0.0)
    with outages.one():
        during = time.monotonic()
        assert outages.any_since(during)
    assert outages.any_since(during)
    assert not outages.any_since(time.monotonic())


def test_moves_are_counted_from_the_log(tmp_path):
    log = tmp_path / "gmbd.log"
    at = "2026-11-20T14:22:26.123456Z"
    log.write_text(
        f"{at} info evicted tenant=m00 device=host-0 session=6 lease=1 bytes=100 took_seconds=0.1\n"
        f"{at} info evicted tenant=m01 device=host-0 session=7 lease=2 bytes=20 took_seconds=0.1\n"
        f"{at} warning evict_failed tenant=m01 lease=2 message=\"no room, evicted bytes=9\"\n"
        f"{at} info serving\n"
    )
    times, nbytes = moves_of(log)
    assert (times["evicted"], nbytes["evicted"], times["evict_failed"]) == (2, 120, 1)


def test_nothing_is_wrong_after_20_seconds_of_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-B", BENCH / "random_load.py", "--out", tmp_path]
        + ["--bin", os.environ["GMB_BIN_DIR"], "--seed", str(SEED), "--seconds", "20"]
        + ["--device", "host", "--servers", "models", "--within", "200"]
        # Six models of up to 30 MiB.
        + ["--models", "6", "--pool-mib", "84", "--host-pool-mib", "256"]
        + ["--kill", "5", "--stop", "4", "--reclaim", "1", "--limit", "2", "--kill-broker", "5"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.stdout.splitlines()[-1] == "random load: nothing wrong, all back"
    assert done.returncode == 0
    result = json.loads((tmp_path / "result.json").read_text())
    for what in ("kill", "stop", "reclaim", "kill_broker"):
        assert result["did"][what] > 0, what
    assert result["events"]["evicted"] > 0 and result["events"]["restored"] > 0
    assert result["events"]["session_adopted"] > 0
    assert result["requests"] > 50
