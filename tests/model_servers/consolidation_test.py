"""bench/consolidation in small: every phase that a machine without a GPU has."""

import json
import os
import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "consolidation"


def test_the_broker_serves_more_models_than_a_split(tmp_path):
    done = subprocess.run(
        [sys.executable, "-B", BENCH / "consolidate.py", "--out", tmp_path]
        + ["--bin", os.environ["GMB_BIN_DIR"], "--device", "host", "--seconds", "4"]
        + ["--card-mib", "64", "--host-pool-mib", "256", "--factors", "3"]
        + ["--alone-models", "3"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    print(done.stdout, done.stderr)
    figure = json.loads((tmp_path / "figure.json").read_text())
    assert figure["peaks"].keys() == {"encoder", "convnet", "recommender"}
    trials = {(trial["mode"], trial["models"]): trial for trial in figure["trials"]}
    # 64 MiB for models of up to 30: two in a split, and six on the broker.
    assert trials["static", 2]["served"] == 2
    assert trials["static", 3]["served"] < 3
    assert trials["gmb", 6]["served"] == 6, "one of the broker's models was refused, or wrong"
    assert trials["gmb", 6]["all"]["wrong"] == 0
    # Servers are asked one after the other: what moves meanwhile may count twice.
    assert 0 < trials["gmb", 6]["memory"]["mean"] <= 1
    # The waits of each request are said, and add up.
    waited = trials["gmb", 6]["waited_for"]
    assert waited["all"]["count"] == trials["gmb", 6]["all"]["ok"]
    slow = waited["slowest"][0]
    assert abs(sum(slow["parts"].values()) - slow["latency_ms"]) < 1
    lines = (tmp_path / "gmb-6-seed-6.waits.jsonl").read_text().splitlines()
    assert len(lines) == trials["gmb", 6]["all"]["requests"]
    assert figure["alone_after"]["requests"] == figure["alone"]["requests"]
    goals = {goal["goal"]: goal["reached"] for goal in figure["goals"]}
    assert goals["at least 3x the models of a static split"]
    assert "| gmb | 6 | 6 |" in done.stdout
