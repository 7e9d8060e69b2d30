# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for tests/gpu/cupy: each test's outcome as a line of JSON in the file $CUPY_REPORT, as soon as it is known."""

import json
import os

stages = {}


def pytest_runtest_logreport(report):
    """Called for setup, call and teardown of each test; with pytest-xdist in the process that leads.  One that dies has a report of its own."""
    what = "xfail" if hasattr(report, "wasxfail") else report.outcome
    seen = stages.setdefault(report.nodeid, {"what": "passed", "text": ""})
    if what != "passed" and seen["what"] != "failed":
        seen["what"] = what
        seen["text"] = "\n".join(str(report.longrepr).splitlines()[-12:])[-1500:] if report.longrepr else ""
    if report.when in ("teardown", "???") or (report.when != "setup" and what == "failed"):
        with open(os.environ["CUPY_REPORT"], "a", encoding="utf-8") as out:
            out.write(json.dumps({"test": report.nodeid, **seen}) + "\n")
