#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws how long a program stands still while it is saved, from what tests/gpu/checkpoint_speed --json wrote.

	plot_stop.py STOP.json OUTPUT.svg		(needs matplotlib, from PyPI)
"""
import collections
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "cricket"
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen first)

lines = collections.defaultdict(list)
for row in json.load(open(sys.argv[1], encoding="utf-8")):
    if row["stopped_us"]:
        lines[row["what"]].append((row["mib"] / 1024, row["stopped_us"] / 1000))
figure, axes = plt.subplots(figsize=(7, 4))
for what, points in lines.items():
    axes.plot(*zip(*sorted(points)), marker="o", label=what)
axes.set(xscale="log", yscale="log", xlabel="memory of the session, GiB", ylabel="program stopped, ms")
axes.set_xticks(sizes := sorted({x for points in lines.values() for x, _ in points}), [f"{x:g}" for x in sizes])
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.legend()
figure.tight_layout()
figure.savefig(sys.argv[2], metadata={"Date": None})
