#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What --metrics says of GPUs by an NVML that is made up: figures, a GPU that is lost, and an NVML that hangs or dies while somebody scrapes."""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from scrape import TOOLS, Scrape, WithNvml, samples  # noqa: E402
from whole import runner  # noqa: E402

BY_NVML = ("cricket_gpu_utilization_ratio", "cricket_gpu_temperature_celsius", "cricket_gpu_power_watts", "cricket_gpu_throttled",
           "cricket_gpu_ecc_errors_total", "cricket_gpu_sample_age_seconds")
MIB = 1 << 20


class GpuMetrics(WithNvml):
    def serve(self, *options, name="first"):
        server = super().serve(*options, name=name)
        # Until the first answer there is no sample.
        self.wait(lambda: self.value("cricket_gpu_up") == 1)
        return server

    def reader(self, server):
        (pid,) = [pid for pid in runner.children_of(server.process.pid) if self.name_of(pid) == "cricket-nvml"]
        return pid

    @staticmethod
    def name_of(pid):
        with open("/proc/%d/comm" % pid, encoding="utf-8") as f:
            return f.read().strip()

    def test_figures(self):
        server = self.serve()
        text = self.scrape()
        found = samples(text)
        (identity,) = [dict(have) for name, have in found if name == "cricket_gpu_info"]
        self.assertRegex(identity["uuid"], r"^GPU-[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$")
        self.assertEqual(identity["name"], "Cricket Soft GPU")
        labels = {"gpu": identity["gpu"], "uuid": identity["uuid"]}
        self.assertEqual(labels["gpu"], "0")

        def value(name, **more):
            return found[name, frozenset({**labels, **more}.items())]

        self.assertEqual(value("cricket_gpu_temperature_celsius"), 40)
        self.assertEqual(value("cricket_gpu_power_watts"), 1)
        self.assertEqual(value("cricket_gpu_utilization_ratio"), 0.73)
        self.assertEqual(value("cricket_gpu_memory_free_bytes"), 700 * MIB)
        self.assertEqual(value("cricket_gpu_throttled", reason="power_cap"), 1)
        self.assertEqual(value("cricket_gpu_throttled", reason="thermal"), 0)
        self.assertEqual(value("cricket_gpu_ecc_errors_total", kind="uncorrected"), 31)
        self.check_labels(text)
        # A session takes of what is free as the server counts it, where NVML has more.
        server.stop()
        server = self.serve("--gpu-memory", "600M", name="second")
        self.assertEqual(self.value("cricket_gpu_memory_free_bytes"), 600 * MIB)
        program, _ = self.start(server)
        # Of one text: a lease may change between two.
        found = {name: value for (name, _), value in samples(self.scrape()).items()}
        leased = found["cricket_gpu_memory_leased_bytes"]
        self.assertGreater(leased, 0)
        self.assertEqual(found["cricket_gpu_memory_free_bytes"], max(0, 600 * MIB - leased))
        self.finish(program)

    def test_promtool(self):
        promtool = shutil.which("promtool", path=TOOLS)
        if not promtool:
            self.skipTest("no promtool (Debian's package prometheus)")
        self.serve()
        done = subprocess.run([promtool, "check", "metrics"], input=self.scrape(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_lost(self):
        """A GPU falls off its bus, and comes back."""
        server = self.serve()
        with open(self.lost, "w", encoding="utf-8"):
            pass
        self.wait(lambda: self.value("cricket_gpu_up") == 0)
        self.assertEqual(self.value("cricket_gpu_memory_free_bytes"), 0)
        os.unlink(self.lost)
        self.wait(lambda: self.value("cricket_gpu_up") == 1)
        self.assertEqual(self.value("cricket_gpu_memory_free_bytes"), 700 * MIB)
        self.assertEqual(len(re.findall("GPU 0 is lost", self.log_of(server))), 1)
        self.assertEqual(len(re.findall("GPU 0 is back", self.log_of(server))), 1)

    def test_hangs(self):
        """Nobody waits for an NVML that hangs, and for one that died neither."""
        server = self.serve()
        os.kill(self.reader(server), signal.SIGSTOP)
        age = self.value("cricket_gpu_sample_age_seconds")
        # Past the next question and its time limit.
        self.wait(lambda: self.value("cricket_gpu_sample_age_seconds") > age + 4)
        # What it said is shown until it is old, with its age.
        self.assertEqual(self.value("cricket_gpu_temperature_celsius"), 40)
        self.assertEqual(self.value("cricket_gpu_up"), 1)
        self.assertEqual(self.get("/healthz")[0], 200)
        os.kill(self.reader(server), signal.SIGKILL)
        self.wait(lambda: "ended or failed" in self.log_of(server))
        self.assertEqual(self.get("/healthz")[0], 200)
        self.assertEqual(self.value("cricket_gpu_temperature_celsius"), 40)
        # A session needs no NVML.
        program, _ = self.start(server)
        self.finish(program)


class SoftGpu(Scrape):
    def test_nothing_made_up(self):
        server = self.serve()
        program, _ = self.start(server)
        held = self.value("cricket_gpu_memory_held_bytes")
        self.assertGreater(held, 0)
        self.assertEqual(self.value("cricket_gpu_up"), 1)
        self.assertEqual(self.value("cricket_gpu_memory_used_bytes"), held)
        self.assertEqual(self.value("cricket_gpu_memory_free_bytes"), self.value("cricket_gpu_memory_bytes") - held)
        self.assertEqual([name for name, _ in samples(self.scrape()) if name in BY_NVML], [])
        self.assertEqual([pid for pid in runner.children_of(server.process.pid) if GpuMetrics.name_of(pid) == "cricket-nvml"], [])
        self.finish(program)


if __name__ == "__main__":
    unittest.main()
