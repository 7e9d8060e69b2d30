#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dashboard.json, the dashboard for Grafana: rows of panels, from the table below.

	gen_dashboard.py dashboard.json
"""

import json
import sys

BY = '{instance=~"$instance"}'

# title, unit (Grafana's name), type of panel, (expression, legend)...
PANELS = (
    ("Sessions by state", "short", "timeseries", (f"sum by (state) (cricket_sessions{BY})", "{{state}}")),
    ("Sessions by owner", "short", "timeseries", (f"sum by (owner) (cricket_sessions{BY})", "{{owner}}")),
    ("Memory held", "bytes", "timeseries", (f"sum by (gpu, owner) (cricket_gpu_memory_held_bytes{BY})", "GPU {{gpu}} {{owner}}")),
    ("Share of the allowed memory", "percentunit", "gauge",
     (f"sum by (gpu) (cricket_gpu_memory_held_bytes{BY}) / sum by (gpu) (cricket_gpu_memory_allowed_bytes{BY})", "GPU {{gpu}}")),
    ("Memory that is free to grant", "bytes", "timeseries", (f"sum by (gpu) (cricket_gpu_memory_free_bytes{BY})", "GPU {{gpu}}")),
    ("GPUs that answer", "short", "timeseries", (f"cricket_gpu_up{BY}", "{{instance}} GPU {{gpu}}")),
    ("GPUs busy", "percentunit", "timeseries", (f"cricket_gpu_utilization_ratio{BY}", "{{instance}} GPU {{gpu}}")),
    ("Temperature", "celsius", "timeseries", (f"cricket_gpu_temperature_celsius{BY}", "{{instance}} GPU {{gpu}}")),
    ("Power", "watt", "timeseries", (f"cricket_gpu_power_watts{BY}", "{{instance}} GPU {{gpu}}")),
    ("Lowered clocks and ECC errors", "short", "timeseries",
     (f"sum by (gpu, reason) (cricket_gpu_throttled{BY})", "GPU {{gpu}} {{reason}}"),
     (f"sum by (gpu, kind) (increase(cricket_gpu_ecc_errors_total{BY}[$__rate_interval]))", "GPU {{gpu}} {{kind}}")),
    ("Calls a second", "ops", "timeseries", (f"sum by (class) (rate(cricket_calls_total{BY}[$__rate_interval]))", "{{class}}")),
    ("Waited calls a second", "ops", "timeseries", (f"sum by (owner) (rate(cricket_waited_calls_total{BY}[$__rate_interval]))", "{{owner}}")),
    ("Bytes a second", "Bps", "timeseries",
     (f"sum(rate(cricket_received_bytes_total{BY}[$__rate_interval]))", "from programs"),
     (f"sum(rate(cricket_sent_bytes_total{BY}[$__rate_interval]))", "to programs")),
    ("Time of waited calls, 99th percentile", "s", "timeseries",
     (f"histogram_quantile(0.99, sum by (le, class) (rate(cricket_waited_call_seconds_bucket{BY}[$__rate_interval])))", "{{class}}")),
    ("Failed calls a second", "ops", "timeseries", (f"sum by (kind) (rate(cricket_call_failures_total{BY}[$__rate_interval]))", "{{kind}}")),
    ("Images", "short", "timeseries", (f"sum by (result) (increase(cricket_checkpoints_total{BY}[$__rate_interval]))", "{{result}}")),
    ("Bytes of images a second", "Bps", "timeseries", (f"sum(rate(cricket_checkpoint_bytes_total{BY}[$__rate_interval]))", "written")),
    ("Programs stand still for an image, 95th percentile", "s", "timeseries",
     (f"histogram_quantile(0.95, sum by (le) (rate(cricket_checkpoint_stop_seconds_bucket{BY}[$__rate_interval])))", "stop")),
    ("Events of sessions", "short", "timeseries",
     (f"sum by (event) (increase(cricket_session_events_total{BY}[$__rate_interval]))", "{{event}}"),
     (f"sum(increase(cricket_migrations_total{BY}[$__rate_interval]))", "migrations")),
    ("Decisions against", "ops", "timeseries",
     ('sum by (question, answer) (rate(cricket_decisions_total{instance=~"$instance",answer!="yes"}[$__rate_interval]))', "{{question}}: {{answer}}")),
    ("Share of the GPU's time", "percentunit", "timeseries",
     (f"sum by (gpu, owner) (rate(cricket_turn_seconds_total{BY}[$__rate_interval]))", "GPU {{gpu}} {{owner}}")),
    ("Turns", "ops", "timeseries", (f"sum by (gpu, step) (rate(cricket_turns_total{BY}[$__rate_interval]))", "GPU {{gpu}} {{step}}")),
    ("Refusals", "ops", "timeseries", (f"sum by (kind) (rate(cricket_refusals_total{BY}[$__rate_interval]))", "{{kind}}")),
    ("The server", "short", "timeseries",
     (f"rate(process_cpu_seconds_total{BY}[$__rate_interval])", "processors"),
     (f"process_open_fds{BY} / process_max_fds{BY}", "share of descriptors")),
)


def panel(number, title, unit, kind, *targets):
    return {
        "id": number + 1, "title": title, "type": kind, "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"h": 8, "w": 12, "x": number % 2 * 12, "y": number // 2 * 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": chr(ord("A") + i), "expr": expression, "legendFormat": legend} for i, (expression, legend) in enumerate(targets)]}


def main():
    dashboard = {
        "title": "Cricket", "uid": "cricket", "tags": ["cricket"], "schemaVersion": 38, "version": 1, "refresh": "30s", "editable": True,
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            {"name": "instance", "type": "query", "datasource": {"type": "prometheus", "uid": "${datasource}"},
             "query": "label_values(cricket_build_info, instance)", "includeAll": True, "allValue": ".*", "multi": True, "refresh": 2}]},
        "panels": [panel(number, *row) for number, row in enumerate(PANELS)]}
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        json.dump(dashboard, f, indent="\t")
        f.write("\n")


if __name__ == "__main__":
    main()
