#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What share/ gives to those who watch: alert rules by promtool, and dashboard and configuration with a real Prometheus, which asks a
real server on 127.0.0.1.  Skipped without Debian's prometheus: ./run test fetches it."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from scrape import TOOLS, WithNvml  # noqa: E402
from whole import HERE, runner  # noqa: E402

SHARE = os.path.join(HERE, os.pardir, os.pardir, "share")
PROMETHEUS, PROMTOOL = (shutil.which(name, path=TOOLS) for name in ("prometheus", "promtool"))
# Grafana's variables, as it would put them for scrapes that are close together.
VARIABLES = {"$__rate_interval": "20s", "$instance": ".*"}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


@unittest.skipUnless(PROMETHEUS and PROMTOOL, "no prometheus and promtool (Debian's package prometheus)")
class Prometheus(WithNvml):
    def promtool(self, *words):
        done = subprocess.run([PROMTOOL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_rules(self):
        self.promtool("check", "config", os.path.join(SHARE, "prometheus.yml"))
        self.promtool("check", "rules", os.path.join(SHARE, "alerts.yml"))
        path = os.path.join(self.dir, "test.yml")
        text = read(HERE, "alerts_test.yml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("ALERTS", os.path.realpath(os.path.join(SHARE, "alerts.yml"))))
        self.promtool("test", "rules", path)
        # Each has a test.
        self.assertEqual(set(re.findall(r"alert: (\w+)", read(SHARE, "alerts.yml"))), set(re.findall(r"alertname: (\w+)", text)))

    def api(self, path, **query):
        with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/%s?%s" % (self.port, path, urllib.parse.urlencode(query)), timeout=30) as reply:
            answer = json.load(reply)
        self.assertEqual(answer["status"], "success")
        return answer["data"]

    def found(self, query, condition=bool):
        """What it finds, once that is so: when a scrape is late, there is nothing of that server until the next one."""
        results = []

        def there():
            results[:] = self.api("query", query=query)["result"]
            return condition(results)

        self.wait(there)
        return results

    def healths(self):
        return {rule["health"] for group in self.api("rules")["groups"] for rule in group["rules"]} - {"unknown"}

    def start_prometheus(self):
        """With our configuration and rules, and shorter intervals."""
        self.port = runner.free_port()
        config = read(SHARE, "prometheus.yml").replace("scrape_interval: 15s", "scrape_interval: 300ms\n  evaluation_interval: 1s\n  scrape_timeout: 300ms")
        config = config.replace("127.0.0.1:9435", "127.0.0.1:%d" % self.address[1])
        directory = os.path.join(self.dir, "prometheus")
        os.mkdir(directory)
        shutil.copy(os.path.join(SHARE, "alerts.yml"), directory)
        with open(os.path.join(directory, "prometheus.yml"), "w", encoding="utf-8") as f:
            f.write(config)
        with open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen([PROMETHEUS, "--config.file", os.path.join(directory, "prometheus.yml"), "--storage.tsdb.path",
                                        os.path.join(directory, "data"), "--web.listen-address", "127.0.0.1:%d" % self.port],
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory)
        self.addCleanup(lambda: (process.kill(), process.wait()))

        def up():
            self.assertIsNone(process.poll(), read(directory, "log"))
            try:
                return [t["health"] for t in self.api("targets")["activeTargets"]] == ["up"]
            except OSError:
                return False

        self.wait(up)

    def test_dashboard(self):
        server = self.serve()
        program, session = self.start(server)
        self.start_prometheus()
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "image"))
        with open(os.path.join(self.dir, "dashboard"), "w", encoding="utf-8") as f:
            subprocess.run([sys.executable, os.path.join(SHARE, "gen_dashboard.py"), f.name], check=True, timeout=60)
        panels = json.loads(read(self.dir, "dashboard"))["panels"]
        queries = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
        self.assertGreater(len(queries), 15)
        for title, query in queries:
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            (first, *_) = self.found(query)
            self.assertEqual(len(first["value"]), 2, title)
        # The latest scrape may be of the time of the checkpoint.
        self.found('sum(cricket_sessions{state="running"})', lambda results: [result["value"][1] for result in results] == ["1"])
        # Prometheus asked for OpenMetrics and took the types from it.
        kinds = {name: entry[0]["type"] for name, entry in self.api("metadata").items()}
        self.assertEqual((kinds["cricket_calls"], kinds["cricket_waited_call_seconds"], kinds["cricket_sessions"]), ("counter", "histogram", "gauge"))
        # None has been evaluated at first.
        self.wait(self.healths)
        self.assertEqual(self.healths(), {"ok"})
        self.finish(program)


if __name__ == "__main__":
    unittest.main()
