#!/usr/bin/python3
"""Writes docs/coverage.md: which functions of CUDA's driver and runtime API Cricket implements, and why not the others.

coverage.py --driver cuda_coverage.json [--runtime-map cudart.map --runtime-unsupported unsupported.txt] (--out FILE | --check FILE)
    --check compares and fails with the remedy; it passes over a file made for another CUDA version.
"""

import argparse
import fnmatch
import json
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True

import emit_coverage

HEAD = """\
# Coverage

Made by `rpc/gen/coverage.py` (`meson compile -C BUILD coverage-doc`): do not edit. CUDA {major}.{minor}.

A function that is not implemented returns `CUDA_ERROR_NOT_SUPPORTED` or `cudaErrorNotSupported` and is named once in the log. Versions of a
function (`_v2`, `_ptsz`) are listed under its name, with the suffixes where only some of them are meant.
"""

_SUFFIX = re.compile(r"^(\w+?)((?:_v\d+)?(?:_ptsz|_ptds)?)$")


def folded(names, every):
    """Names under their base name: `cuMemAlloc` where every version that exists is meant, else `cuMemAlloc (first, _v2_ptds)`."""
    def split(name):
        return _SUFFIX.match(name).groups()

    versions, meant = {}, {}
    for target, source in ((versions, every), (meant, names)):
        for name in source:
            base, suffix = split(name)
            target.setdefault(base, []).append(suffix)
    made = []
    for base in sorted(meant):
        some = sorted(meant[base])
        partial = "" if some == sorted(versions[base]) else " (" + ", ".join(s or "first" for s in some) + ")"
        made.append(f"`{base}`{partial}")
    return ", ".join(made)


def section(title, implemented, unsupported, note):
    """implemented: names; unsupported: name -> reason."""
    every = list(implemented) + list(unsupported)
    lines = [f"## {title}", "", f"{len(every)} exported functions: {len(implemented)} implemented, {len(unsupported)} not.{note}", "",
             "### Implemented", "",
             textwrap.fill(folded(implemented, every), 140, break_long_words=False, break_on_hyphens=False), "",
             "### Not supported", "", "| why | functions |", "|---|---|"]
    reasons = {}
    for name, reason in unsupported.items():
        reasons.setdefault(reason, []).append(name)
    lines += [f"| {reason} | {folded(reasons[reason], every)} |" for reason in sorted(reasons, key=str.lower)]
    return lines + [""]


def driver_section(data):
    implemented = [f["name"] for f in data["functions"] if f["class"] in emit_coverage.IMPLEMENTED]
    unsupported = {f["name"]: f["reason"] for f in data["functions"] if f["class"] not in emit_coverage.IMPLEMENTED}
    waits = sum(p["mode"] == "waits" for p in data["procedures"])
    note = f" They stand on {len(data['procedures'])} procedures, {waits} that wait for an answer and " \
           f"{len(data['procedures']) - waits} that do not; `rpc/api/cuda.api` has them all."
    return section("Driver API, `libcuda.so.1`", implemented, unsupported, note)


def runtime_section(map_path, unsupported_path):
    with open(map_path, encoding="utf-8") as f:
        names = sorted(set(re.findall(r"^\s*((?:__)?cuda\w+);", f.read(), re.M)))
    reasons = {}
    with open(unsupported_path, encoding="utf-8") as f:
        for line in f:
            pattern, _, reason = line.split("#")[0].strip().partition(" ")
            if pattern:
                reasons[pattern] = reason.strip()
    unsupported = {}
    for name in names:
        # A listed name stands for its per-thread forms too.
        base = re.sub(r"_pt[sd][sz]$", "", name)
        for pattern, reason in reasons.items():
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(base, pattern):
                unsupported[name] = reason
                break
    return section("Runtime API, `libcudart.so.13`", [n for n in names if n not in unsupported], unsupported,
                   " What a function of the driver API does not support, the runtime over it does not either.")


def main():
    parser = argparse.ArgumentParser(description="writes or checks docs/coverage.md")
    parser.add_argument("--driver", required=True)
    parser.add_argument("--runtime-map")
    parser.add_argument("--runtime-unsupported")
    parser.add_argument("--out")
    parser.add_argument("--check")
    arguments = parser.parse_args()
    with open(arguments.driver, encoding="utf-8") as f:
        data = json.load(f)
    major, minor = data["cuda"] // 1000, data["cuda"] % 1000 // 10
    lines = HEAD.format(major=major, minor=minor).splitlines() + [""] + driver_section(data)
    if arguments.runtime_map:
        lines += runtime_section(arguments.runtime_map, arguments.runtime_unsupported)
    text = "\n".join(lines).rstrip() + "\n"
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as f:
            f.write(text)
    if not arguments.check:
        return 0
    committed = ""
    if os.path.exists(arguments.check):
        with open(arguments.check, encoding="utf-8") as f:
            committed = f.read()
    if committed and f"CUDA {major}.{minor}." not in committed:
        print(f"{arguments.check} is about another CUDA version")
        return 77
    if committed != text:
        print(f"{arguments.check} is not what the tables say: run `meson compile -C BUILD coverage-doc` and commit it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
