# SPDX-License-Identifier: Apache-2.0
"""Emits cuda_coverage.json: how every exported function of libcuda is answered.  coverage.py writes docs/coverage.md from it."""

import json

# Class in the data -> what a reader of docs/coverage.md sees.
IMPLEMENTED = ("local", "same", "per_thread", "waits", "batched")


def data(model):
    functions = []
    for entry in sorted(model.entries, key=lambda e: e.name):
        row = {"name": entry.name, "class": "unsupported" if entry.kind == "unknown" else entry.kind}
        if entry.number is not None:
            row["procedure"] = entry.number
        if entry.target:
            row["as"] = entry.target
        if entry.reason:
            row["reason"] = entry.reason
        functions.append(row)
    functions += [{"name": name, "class": "unsupported", "reason": reason} for name, reason in model.undeclared.items()]
    functions.sort(key=lambda row: row["name"])
    procedures = [{"number": p.number, "name": p.name, "mode": "batched" if p.batched else "waits", "generated": not p.hand}
                  for p in model.procedures]
    return json.dumps({"cuda": model.headers.version, "functions": functions, "procedures": procedures}, indent=1) + "\n"
