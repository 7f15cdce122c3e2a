#!/usr/bin/env python3
"""Writes gmb.json, the dashboard, with Grafana's foundation SDK.

    make_dashboard.py [--check]

Needs the package grafana-foundation-sdk (tests/deploy/requirements.txt has its
version). --check writes nothing and fails when the file is not what it would be.
"""

import argparse
import pathlib
import sys

from grafana_foundation_sdk.builders import common as options
from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models

FILE = pathlib.Path(__file__).with_name("gmb.json")
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
# The choices of the variables at the top of the page.
NODE = 'instance=~"$instance"'
POOL = NODE + ', device_uuid=~"$device"'
TENANT = POOL + ', tenant=~"$tenant"'
OF_TENANT = NODE + ', tenant=~"$tenant"'
RATE = "[$__rate_interval]"


def query(letter, expression, legend):
    return prometheus.Dataquery().ref_id(letter).expr(expression).legend_format(legend)


def graph(title, unit, *queries, stacked=False, about=""):
    panel = (timeseries.Panel().title(title).unit(unit).datasource(SOURCE).description(about)
             .min(0).span(12).height(8))
    if stacked:
        stacking = options.StackingConfig().mode(common.StackingMode.NORMAL)
        panel.stacking(stacking).fill_opacity(40)
    for letter, (expression, legend) in zip("ABCD", queries):
        panel.with_target(query(letter, expression, legend))
    return panel


def number(title, unit, expression, about=""):
    return (stat.Panel().title(title).unit(unit).datasource(SOURCE).description(about)
            .span(6).height(4).with_target(query("A", expression, "{{device_uuid}}")))


def variable(name, label, series):
    return (dashboard.QueryVariable(name).label(label).datasource(SOURCE)
            .query(f"label_values({series}, {name_of(name)})").multi(True).include_all(True)
            .current(models.VariableOption(selected=True, text="All", value="$__all"))
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED))


def name_of(variable_name):
    return {"device": "device_uuid"}.get(variable_name, variable_name)


def quantiles(histogram, selection):
    return [(f"histogram_quantile({q}, sum by (le) (rate({histogram}_bucket{{{selection}}}{RATE})))",
             f"p{int(q * 100)}") for q in (0.5, 0.99)]


def build():
    board = (
        dashboard.Dashboard("gmb: GPU memory").uid("gmb-gpu-memory").tags(["gmb", "gpu"])
        .editable().refresh("30s").time("now-3h", "now").timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source")
                       .type("prometheus"))
        .with_variable(variable("instance", "Node", "gmb_build_info"))
        .with_variable(variable("device", "Device", "gmb_pool_info"))
        .with_variable(variable("tenant", "Tenant", "gmb_tenant_handles")))
    rows = [
        ("Now", [
            number("Guaranteed, of the pool", "percentunit",
                   f"gmb_pool_guaranteed_bytes{{{POOL}}} / gmb_pool_capacity_bytes{{{POOL}}}"),
            number("Leased, of the pool", "percentunit",
                   f'sum by (instance, device_uuid) (gmb_pool_bytes{{{POOL}, state="granted"}})'
                   f" / sum by (instance, device_uuid) (gmb_pool_capacity_bytes{{{POOL}}})"),
            number("Waiting", "bytes", f"gmb_pool_waiting_bytes{{{POOL}}}"),
            number("Missing and unreturned", "bytes",
                   'sum by (instance, device_uuid) '
                   f'(gmb_pool_bytes{{{POOL}, state=~"missing|unreturned"}})'),
        ]),
        ("Pools", [
            graph("Pool by state", "bytes",
                  (f"sum by (state) (gmb_pool_bytes{{{POOL}}})", "{{state}}"), stacked=True),
            graph("Outside the pool", "bytes",
                  (f"gmb_pool_outside_bytes{{{POOL}}}", "outside {{device_uuid}}"),
                  (f"gmb_pool_headroom_left_bytes{{{POOL}}}", "headroom left {{device_uuid}}")),
            graph("Host pool", "bytes",
                  (f"sum by (part) (gmb_host_pool_part_bytes{{{NODE}}})", "{{part}}"),
                  (f"sum(gmb_host_pool_bytes{{{NODE}}})", "size")),
            graph("Handles", "short", (f"gmb_handles{{{NODE}}}", "in use {{instance}}"),
                  (f"gmb_handles_limit{{{NODE}}}", "limit {{instance}}")),
        ]),
        ("Tenants", [
            graph("On the device", "bytes",
                  (f"sum by (tenant) (gmb_tenant_resident_bytes{{{TENANT}}})", "{{tenant}}"),
                  stacked=True),
            graph("Quota", "bytes",
                  (f"sum by (tenant) (gmb_tenant_guarantee_bytes{{{TENANT}}})",
                   "guarantee {{tenant}}"),
                  (f"sum by (tenant) (gmb_tenant_limit_bytes{{{TENANT}}})", "limit {{tenant}}")),
            graph("Borrowed and hard", "bytes",
                  (f"sum by (tenant) (gmb_tenant_borrowed_bytes{{{TENANT}}})",
                   "borrowed {{tenant}}"),
                  (f"sum by (tenant) (gmb_tenant_hard_bytes{{{TENANT}}})", "hard {{tenant}}")),
            graph("Evicted and backed", "bytes",
                  (f"sum by (tenant) (gmb_tenant_evicted_bytes{{{TENANT}}})",
                   "evicted {{tenant}}"),
                  (f"sum by (tenant) (gmb_tenant_backed_bytes{{{TENANT}}})", "backed {{tenant}}")),
            graph("Obtainable without waiting", "bytes",
                  (f"sum by (tenant) (gmb_tenant_obtainable_bytes{{{TENANT}}})", "{{tenant}}")),
            graph("Processes", "short",
                  (f"sum by (tenant, state) (gmb_tenant_sessions{{{OF_TENANT}}})",
                   "{{tenant}} {{state}}"), stacked=True),
            graph("Mean bytes on the device", "bytes",
                  (f"sum by (tenant) (rate(gmb_tenant_resident_byte_seconds_total{{{TENANT}}}{RATE}))",
                   "{{tenant}}"), about="From byte-seconds: what happened between two scrapes is in it."),
        ]),
        ("Requests", [
            graph("Requests", "reqps",
                  (f"sum by (outcome, reason) (rate(gmb_requests_total{{{TENANT}}}{RATE}))",
                   "{{outcome}} {{reason}}"),
                  (f"sum(rate(gmb_requests_queued_total{{{TENANT}}}{RATE}))", "queued")),
            graph("From a request to its grant", "s",
                  *quantiles("gmb_request_wait_seconds", OF_TENANT)),
            graph("Queue", "short",
                  (f"sum by (tenant) (gmb_tenant_waiting_requests{{{TENANT}}})", "{{tenant}}")),
            graph("Sessions", "ops",
                  (f"sum(rate(gmb_sessions_opened_total{{{OF_TENANT}}}{RATE}))", "opened"),
                  (f"sum by (cause) (rate(gmb_sessions_closed_total{{{OF_TENANT}}}{RATE}))",
                   "closed: {{cause}}"),
                  (f"sum by (reason) (rate(gmb_sessions_refused_total{{{NODE}}}{RATE}))",
                   "refused: {{reason}}")),
        ]),
        ("Moves", [
            graph("Moved", "Bps",
                  (f"sum(rate(gmb_evicted_bytes_total{{{TENANT}}}{RATE}))", "evicted"),
                  (f"sum(rate(gmb_restored_bytes_total{{{TENANT}}}{RATE}))", "restored"),
                  (f"sum(rate(gmb_backed_bytes_total{{{POOL}}}{RATE}))", "backed ahead")),
            graph("Moves that failed", "ops",
                  (f'sum(rate(gmb_evictions_total{{{TENANT}, outcome="failed"}}{RATE}))',
                   "evictions"),
                  (f'sum(rate(gmb_restores_total{{{TENANT}, outcome="failed"}}{RATE}))',
                   "restores"),
                  (f"sum(rate(gmb_create_failures_total{{{POOL}}}{RATE}))", "slabs not made")),
            graph("How long an eviction takes", "s", *quantiles("gmb_eviction_seconds", POOL)),
            graph("How long a restore takes", "s", *quantiles("gmb_restore_seconds", POOL)),
        ]),
        ("The broker", [
            graph("Overdue and terminated", "ops",
                  (f"sum by (tenant) (rate(gmb_clients_overdue_total{{{OF_TENANT}}}{RATE}))",
                   "overdue {{tenant}}"),
                  (f"sum by (tenant) (rate(gmb_clients_terminated_total{{{OF_TENANT}}}{RATE}))",
                   "terminated {{tenant}}")),
            graph("Events", "ops",
                  (f"sum by (kind) (rate(gmb_events_total{{{NODE}}}{RATE}))", "{{kind}}"),
                  (f"sum(rate(gmb_events_missed_total{{{NODE}}}{RATE}))", "missed")),
            graph("State", "short",
                  (f"gmb_state_disk_ok{{{NODE}}}", "disk takes changes {{instance}}"),
                  (f"gmb_values_not_in_force{{{NODE}}}", "values not in force {{instance}}")),
        ]),
    ]
    for title, panels in rows:
        board.with_row(dashboard.Row(title))
        for panel in panels:
            board.with_panel(panel)
    return board.build()


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(argv).check
    text = JSONEncoder(sort_keys=True, indent=2).encode(build()) + "\n"
    if not check:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{FILE} is out of date: run {pathlib.Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
