# SPDX-License-Identifier: Apache-2.0
"""A server with --metrics, and readers of what it says."""
import collections
import http.client
import os
import re
import shutil
import socket
import time

from whole import HERE, Whole, runner

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
FRESH = 0.12  # seconds after which the server makes a new text
TOP = os.path.join(HERE, os.pardir, os.pardir)
# Where ./run test puts what it fetched.
TOOLS = os.pathsep.join((os.environ.get("CKT_TEST_PROMETHEUS", ""), os.environ["PATH"]))
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')


def families(text):
    """name: (type, help), in the order of the text; fails if something else stands there."""
    found = collections.OrderedDict()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, help_text = line[7:].split(" ", 1)
            found[name] = help_text
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            found[name] = (kind, found[name])
    return found


def samples(text):
    """(name, frozenset of labels): value"""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.match(line)
        if not match:
            raise AssertionError("no sample: " + line)
        labels = frozenset(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        if (match[1], labels) in found:
            raise AssertionError("twice: " + line)
        found[match[1], labels] = float(match[3])
    return found


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


class Scrape(Whole):
    def serve(self, *options, name="first"):
        server = self.server(name, "--metrics", "127.0.0.1:0", *options)
        self.wait(lambda: "metrics at" in self.log_of(server))
        host, port = re.search(r"metrics at http://([0-9.]+):(\d+)/metrics", self.log_of(server)).groups()
        self.address = host, int(port)
        server.address = "unix:" + server.socket
        return server

    def get(self, path="/metrics", method="GET", connection=None, **headers):
        """(status, text, headers)"""
        connection = connection or http.client.HTTPConnection(*self.address, timeout=30)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode(), dict(response.getheaders())
        finally:
            connection.close()

    def scrape(self, **headers):
        time.sleep(FRESH)
        status, text, _ = self.get(**headers)
        self.assertEqual(status, 200)
        return text

    def value(self, name, **labels):
        """The sum of the samples with these labels, of a new text."""
        return sum(value for (sample, have), value in samples(self.scrape()).items() if sample == name and set(labels.items()) <= have)

    def check_labels(self, text):
        """Each sample has the labels that docs/metrics.md tells of its family."""
        with open(os.path.join(TOP, "docs", "metrics.md"), encoding="utf-8") as f:
            labels = dict(re.findall(r"^\| `([a-z_]+)` \| \w+ \| ([^|]*) \|", f.read(), re.MULTILINE))
        for (sample, have), _ in samples(text).items():
            family = sample if sample in labels else re.sub("_(bucket|sum|count)$", "", sample)
            self.assertEqual({name for name, _ in have} - {"le"}, set(re.findall(r"`(\w+)`", labels[family])), sample)

    def both(self):
        old, new = self.scrape(), self.scrape(Accept=OPENMETRICS)
        return old, new


class WithNvml(Scrape):
    """The server takes its driver for a genuine one, and finds an NVML that is made up (tests/unit/daemon/fake_nvml.c)."""

    def setUp(self):
        super().setUp()
        self.driver = os.path.join(self.dir, "driver.so")
        shutil.copy(os.path.join(self.tree.soft, "libcuda.so.1"), self.driver)
        shutil.copy(os.environ["CKT_TEST_FAKE_NVML"], os.path.join(self.dir, "libnvidia-ml.so.1"))
        self.lost = os.path.join(self.dir, "lost")

    def server(self, name, *options, env=None):
        environment = {"LD_LIBRARY_PATH": self.dir, "FAKE_NVML_LOST": self.lost, **(env or {})}
        server = runner.Server(self.tree, os.path.join(self.dir, name), self.driver, options, environment)
        self.servers.append(server)
        return server
