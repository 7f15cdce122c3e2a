"""A real Prometheus scrapes a real gmbd under load, and runs every rule and query that we ship."""

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import MIB, ROOT, wait_until

RULES = ROOT / "deploy" / "prometheus" / "gmb.rules.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "gmb.json"
RUNBOOK = ROOT / "docs" / "runbook.md"

if not shutil.which("prometheus") or not shutil.which("promtool"):
    if os.environ.get("CI") == "true":
        raise RuntimeError("no prometheus: tools/install-dependencies --lint installs it")
    pytest.skip("no prometheus here", allow_module_level=True)

CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: gmb
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    def __init__(self, folder, target):
        self._log = folder / "prometheus.log"
        config = folder / "prometheus.yaml"
        config.write_text(CONFIG.format(rules=json.dumps(str(RULES)), target=target))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
                 "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log)

    def __enter__(self):
        self._url = "http://" + wait_until(lambda: re.search(
            r'msg="Listening on" address=(\S+)', self._log.read_text(errors="replace")))[1]
        wait_until(self._is_ready)
        return self

    def _is_ready(self):
        try:
            with urllib.request.urlopen(self._url + "/-/ready", timeout=60) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False  # it answers 503 while it starts

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=60)
        finally:
            self._process.kill()

    def ask(self, path, **parameters):
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expression):
        return self.ask("query", query=expression)["result"]


def queries():
    """(panel, query) of the dashboard, its variables filled in as for All."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$__rate_interval", "30s")
            for name in ("instance", "device", "tenant"):
                expression = expression.replace(f"${name}", ".+")
            assert "$" not in expression
            yield panel["title"], expression


def test_every_rule_and_every_panel_works_on_a_real_scrape(loaded, tmp_path):
    token = tmp_path / "token"
    token.write_text("x" * 32)
    loaded.run("hold", "--tenant-token-file", str(token), "--bytes", "2MiB")
    with Prometheus(tmp_path, loaded.address()) as prometheus:
        wait_until(lambda: prometheus.query('up{job="gmb"} == 1'))
        wait_until(lambda: prometheus.query("gmb_state_disk_ok"))
        # Rates need two scrapes.
        wait_until(lambda: prometheus.query("rate(gmb_events_total[30s])"))

        def evaluated():
            groups = prometheus.ask("rules")["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            return rules if rules and all(r["health"] != "unknown" for r in rules) else None

        rules = wait_until(evaluated)
        assert len(rules) == RULES.read_text().count("- alert:")
        assert [(r["name"], r.get("lastError")) for r in rules if r["health"] != "ok"] == []

        ran = empty = 0
        for title, expression in queries():
            ran += 1
            if not prometheus.query(expression):
                empty += 1
                print(f"{title}: {expression} has no series")
        assert ran > 40
        assert empty == 0

        # The scraped figures are those that the broker tells.
        leased = prometheus.query('gmb_tenant_leased_bytes{tenant="a"}')
        assert float(leased[0]["value"][1]) == 96 * MIB


def names_in(text):
    return set(re.findall(r"\bgmb_[a-z_]+", text))


def test_rules_and_dashboard_name_series_that_are_there(loaded):
    there = {re.sub(r"_(bucket|count|sum)$", "", name) for name, _ in loaded.fresh()} | \
            {name for name, _ in loaded.fresh()}
    # The first appears with the first refused session, the others with a keeper.
    there |= {"gmb_sessions_refused_total", "gmb_keeper_up", "gmb_not_adopted"}
    for file in (RULES, DASHBOARD):
        text = re.sub(r"//.*|#.*", "", file.read_text()) if file == RULES else file.read_text()
        assert names_in(text) - there == set(), file


def test_documented_series_are_those_that_are_there(loaded):
    """docs/metrics.md lists them all, and no other."""
    there = set(re.findall(r"^# TYPE (\S+)", loaded.fresh().text, re.M)) | {
        "gmb_sessions_refused_total",
        # With a keeper (component_restart_test).
        "gmb_keeper_up", "gmb_not_kept", "gmb_not_adopted"}
    listed = set(re.findall(r"^\| `(gmb_[a-z_]+)`", (ROOT / "docs" / "metrics.md").read_text(), re.M))
    assert listed == there


def test_promtool_accepts_the_text(loaded):
    done = subprocess.run(["promtool", "check", "metrics"], input=loaded.metrics().text,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_promtool_accepts_the_rules_and_they_fire_when_they_should():
    for command in (["check", "rules", RULES],
                    ["test", "rules", ROOT / "tests" / "metrics" / "gmb.rules.test.yaml"]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, timeout=120,
                              check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried_and_has_an_entry_in_the_runbook():
    rules = RULES.read_text()
    alerts = re.findall(r"- alert: (\w+)", rules)
    tried = set(re.findall(r'ALERTS\{alertname="(\w+)"\}',
                           (ROOT / "tests" / "metrics" / "gmb.rules.test.yaml").read_text()))
    assert set(alerts) == tried
    headings = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.M)
    assert alerts == headings
    links = re.findall(r"runbook: docs/runbook\.md#(\w+)", rules)
    assert links == [alert.lower() for alert in alerts]
