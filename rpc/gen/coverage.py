#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/coverage.md: which functions of CUDA's driver and runtime API Cricket implements, which tests prove it, and why not the others.

coverage.py --driver cuda_coverage.json [--runtime-map cudart.map --runtime-unsupported unsupported.txt] [--truth tests/truth] [--source DIR]
            [--least-driver IMPLEMENTED AGREEING] [--least-runtime IMPLEMENTED AGREEING] (--out FILE | --check FILE)
    --check compares and fails with the remedy; it passes over a file made for another CUDA version.

A function counts as implemented when a recorded test calls it: a line of tests/truth/api/*.txt or misuse.txt names it with success, and
neither api.list nor misuse.list says that a remote session answers that case otherwise (misuse.txt: the runtime's functions only, its driver
names stand for several versions).  The tests of suites api and truth see to it that
what is not listed there agrees.  A function that a GPU's own driver never lets succeed (refusals.list) is counted apart: it refuses as CUDA does.
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

*Implemented* means proven: a test calls the function, and all its results were compared with those
that an NVIDIA GPU's own driver and runtime returned to the same call (`tests/truth/api`,
`tests/truth/misuse.txt`). An unsupported function returns `CUDA_ERROR_NOT_SUPPORTED` or
`cudaErrorNotSupported` and is logged once. Versions of a function (`_v2`, `_ptsz`) are listed under
its name; suffixes follow the name if only some versions are meant. Functions for graphics and video
interop and for Windows are not counted. A function that CUDA's own driver never lets succeed on the
recorded GPU *refuses as CUDA does*: its refusals agree, and it is not counted as implemented.
"""

# Left out of the count: what is about a display, a video decoder or Windows.
NOT_COUNTED = ("cuGraphics*", "cudaGraphics*", "cudaGL*", "cudaVDPAU*", "cudaEGL*", "cudaEventCreateFromEGLSync", "cuEGL*", "cuGL*", "cuVDPAU*",
               "*NvSci*", "cuDeviceGetLuid")
SAYS_UNSUPPORTED = re.compile(r'ckt_(?:call|cudacommon|rt)_unsupported\(((?:[^"();]|"[^"]*"|\([^)]*\))*?),\s*&\w+\)')
DRIVER_UNSUPPORTED = re.compile(r'CKT_CUDACOMMON_UNSUPPORTED\(\s*("[^"]*")\)')
OVERRIDE = re.compile(r'\{CU_DEVICE_ATTRIBUTE_(\w+), (-?\d+),\s+"([^"]+)"\}')
TESTS_SHOWN = 2

_SUFFIX = re.compile(r"^(\w+?)((?:_v\d+)?(?:_ptsz|_ptds)?)$")


def wrapped(text):
    """The lines of a paragraph of a document."""
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


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


def lines_of(path):
    """Lines of a list, without comments."""
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n") for line in f if line.strip() and not line.startswith("#")]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Truth:
    """What tests prove: function -> tests, from what was recorded."""

    def __init__(self, folder):
        self.proofs, self.refused, self.refusals = {}, {}, {}
        if not folder:
            return
        listed = [row.split("\t") for row in lines_of(os.path.join(folder, "api.list"))]
        self.api_rows = [row for row in listed if set(row[2].strip("?").split(",")) & {"all", "tcp"}]
        listed = [row.split("\t") for row in lines_of(os.path.join(folder, "misuse.list"))]
        self.misuse_cases = {row[0] for row in listed if set(row[1].strip("?").split(",")) & {"all", "tcp"}}
        # Function -> (why CUDA refuses it, tests whose refusal agrees).
        self.refusals = {row.split("\t")[0]: (row.split("\t")[1], []) for row in lines_of(os.path.join(folder, "refusals.list"))}
        recorded = os.path.join(folder, "api")
        for name in sorted(os.listdir(recorded)) if os.path.isdir(recorded) else ():
            if name.endswith(".txt"):
                self.read(os.path.join(recorded, name), r"  (\w+)(\([^)]*\)|): (?:(\d+) |(returned))", "api ", self.api_listed)
        self.read(os.path.join(folder, "misuse.txt"), r"  (cuda\w+)\(.*\)(): (\d+)()", "misuse ", lambda case, *_: case in self.misuse_cases)

    def api_listed(self, case, function, what):
        """As api.py reads api.list: a line is about a function, or about what it is called for, and may name how the line ends."""
        def fits(pattern):
            return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in (function, function + what))
        return any(fnmatch.fnmatchcase(case, row[0]) and fits(row[1].partition("=")[0]) for row in self.api_rows)

    def read(self, path, pattern, kind, excused):
        case = ""
        for line in lines_of(path):
            if not line.startswith("  "):
                case = line.split(";")[0].strip()
                continue
            found = re.match(pattern, line)
            if not found or excused(case, found.group(1), found.group(2)):
                continue
            function, succeeded = found.group(1), found.group(3) == "0" or bool(found.group(4))
            if succeeded:
                tests = self.proofs.setdefault(function, [])
            elif function in self.refusals:
                tests = self.refusals[function][1]
            else:
                self.refused[function] = True
                continue
            if kind + case not in tests:
                tests.append(kind + case)

    def refuses(self, function):
        """Whether CUDA refuses it always, and ours in the same way."""
        return function not in self.proofs and bool(self.refusals.get(function, ("", []))[1])

    def idle(self):
        """What stands in refusals.list and should not."""
        return [f"refusals.list: {name} was recorded with success" for name in self.refusals if name in self.proofs] + \
               [f"refusals.list: no recorded refusal of {name}" for name in self.refusals if name not in self.proofs and not self.refusals[name][1]]

    def why_not(self, function):
        return "tests have it refused only" if function in self.refused else "no test was recorded on a GPU"


def counted(name):
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in NOT_COUNTED)


def section(title, written, unsupported, note, truth):
    """written: names that do something; unsupported: name -> reason.  Returns lines, and in percent what is implemented and what answers as CUDA does."""
    every = list(written) + list(unsupported)
    # A GPU's own driver refuses these, and ours does it in the same way, whether it knows more of them or not.
    refusing = [name for name in every if truth.refuses(name)]
    unsupported = {name: reason for name, reason in unsupported.items() if name not in refusing}
    proven = [name for name in written if name in truth.proofs]
    unproven = {}
    for name in written:
        if name not in truth.proofs and name not in refusing:
            unproven.setdefault(truth.why_not(name), []).append(name)
    whole = sum(map(counted, every))
    percent = 100 * sum(map(counted, proven)) / whole
    agreeing = percent + 100 * sum(map(counted, refusing)) / whole
    refuse = "refuses" if len(refusing) == 1 else "refuse"
    lines = [f"## {title}", "", *wrapped(
        f"{len(every)} exported functions, {whole} of them counted: {sum(map(counted, proven))} implemented ({percent:.1f}%), "
        f"{len(refusing)} {refuse} as CUDA does, {sum(map(len, unproven.values()))} written but not proven, {len(unsupported)} not supported.{note}"),
        "", "### Implemented", ""]
    tests = {}
    for name in sorted(proven):
        shown = truth.proofs[name]
        more = f" and {len(shown) - TESTS_SHOWN} more" if len(shown) > TESTS_SHOWN else ""
        tests.setdefault(", ".join(shown[:TESTS_SHOWN]) + more, []).append(name)
    lines += ["| functions | tests |", "|---|---|"]
    lines += [f"| {', '.join(f'`{n}`' for n in tests[where])} | {where} |" for where in sorted(tests, key=lambda w: tests[w][0])]
    lines += ["", "### Refuses as CUDA does", "", "| why | functions |", "|---|---|"]
    causes = {}
    for name in refusing:
        causes.setdefault(truth.refusals[name][0], []).append(name)
    lines += [f"| {why} | {folded(causes[why], every)} |" for why in sorted(causes)]
    lines += ["", "### Written, not proven", "", "| why | functions |", "|---|---|"]
    lines += [f"| {why} | {folded(unproven[why], every)} |" for why in sorted(unproven)]
    lines += ["", "### Not supported", "", "| why | functions |", "|---|---|"]
    reasons = {}
    for name, reason in unsupported.items():
        reasons.setdefault(reason, []).append(name)
    lines += [f"| {reason} | {folded(reasons[reason], every)} |" for reason in sorted(reasons, key=str.lower)]
    return lines + [""], (percent, agreeing)


def driver_section(data, truth):
    implemented = [f["name"] for f in data["functions"] if f["class"] in emit_coverage.IMPLEMENTED]
    unsupported = {f["name"]: f["reason"] for f in data["functions"] if f["class"] not in emit_coverage.IMPLEMENTED}
    waits = sum(p["mode"] == "waits" for p in data["procedures"])
    note = f" They use {len(data['procedures'])} procedures: {waits} wait for a reply and " \
           f"{len(data['procedures']) - waits} do not; `rpc/api/cuda.api` lists them all."
    return section("Driver API, `libcuda.so.1`", implemented, unsupported, note, truth)


def refusals_section(source):
    """What is refused of functions that are supported, by function; and what of the table is not as the sources are."""
    rows = [row.split("\t") for row in lines_of(os.path.join(source, "rpc", "api", "refusals.txt"))]
    said = set()
    for top in ("client/conn", "client/cuda", "client/cudart", "cudacommon"):
        for folder, _, names in os.walk(os.path.join(source, top)):
            for name in (name for name in names if name.endswith(".c")):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    text = f.read()
                    said.update(words for call in SAYS_UNSUPPORTED.findall(text) + DRIVER_UNSUPPORTED.findall(text) for words in re.findall(r'"([^"]*)"', call))
    listed = [row[0] for row in rows]
    wrong = [f"rpc/api/refusals.txt: nothing is refused any more as \"{words}\"" for words in listed if words not in said] + \
            [f"rpc/api/refusals.txt: add a line for \"{words}\", with the functions that refuse it" for words in sorted(said) if words not in listed]
    of = {}
    for words, functions in (row[:2] for row in rows):
        for name in functions.split(", "):
            of.setdefault(name, []).append(words)
    return ["## Refused parameters and modes", "", *wrapped(
        "These functions are supported except for the listed parameters, in every version (`rpc/api/refusals.txt`). "
        "The runtime's functions that call them refuse the same."), "",
            "| function | not supported |", "|---|---|", *(f"| `{name}` | {'; '.join(of[name])} |" for name in sorted(of)), ""], wrong


def attributes_section(source, truth):
    """What a device says otherwise than the recorded GPU does, on purpose; and where tests/truth/api.list does not list just that."""
    with open(os.path.join(source, "server", "worker", "objects", "device.c"), encoding="utf-8") as f:
        overrides = OVERRIDE.findall(f.read())
    recorded = dict(re.findall(r"^  cuDeviceGetAttribute\((\w+)\): 0 CUDA_SUCCESS; value=(-?\d+)$", read(os.path.join(truth, "api", "attributes.txt")), re.M))
    meant = {name: (recorded[name], value, reason) for name, value, reason in overrides if recorded.get(name, value) != value}
    wrong = [f"tests/truth/api/attributes.txt does not tell {name}" for name, _, _ in overrides if name not in recorded]
    for case, function in (("attributes.driver", "cuDeviceGetAttribute"), ("attributes.runtime", "cudaDeviceGetAttribute")):
        listed = {row[1] for row in (line.split("\t") for line in lines_of(os.path.join(truth, "api.list"))) if row[0] == case and "gpu" in row[2]}
        wanted = {f"{function}({name})={value}" for name, (_, value, _) in meant.items()}
        wrong += [f"tests/truth/api.list: {case} needs {row}" for row in sorted(wanted - listed)]
        wrong += [f"tests/truth/api.list: {case} {row} is not what server/worker/objects/device.c says" for row in sorted(listed - wanted)]
    return ["## Attributes of a device", "", *wrapped(
        f"{len(recorded)} attributes were compared with the recorded GPU. {len(meant)} differ on purpose (`server/worker/objects/device.c`), "
        "and so do the runtime's properties that come from them."), "", "| attribute | there | through Cricket | why |", "|---|---|---|---|",
            *(f"| `{name}` | {there} | {here} | {reason} |" for name, (there, here, reason) in sorted(meant.items())), ""], wrong


def runtime_section(map_path, unsupported_path, truth):
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
                   " If a driver function does not support something, neither do the runtime functions that call it.", truth)


def too_low(what, reached, least):
    words = ("is {:.1f}% implemented", "answers in {:.1f}% as CUDA does")
    return [f"the {what} API " + word.format(now) + f", less than {bound}%" for word, now, bound in zip(words, reached, least) if now < bound]


def main():
    parser = argparse.ArgumentParser(description="writes or checks docs/coverage.md")
    parser.add_argument("--driver", required=True)
    parser.add_argument("--runtime-map")
    parser.add_argument("--runtime-unsupported")
    parser.add_argument("--truth")
    parser.add_argument("--source", metavar="DIR", help="the sources, for what they refuse and what attributes they change")
    parser.add_argument("--least-driver", type=float, nargs=2, default=(0, 0), metavar="PERCENT")
    parser.add_argument("--least-runtime", type=float, nargs=2, default=(0, 0), metavar="PERCENT")
    parser.add_argument("--out")
    parser.add_argument("--check")
    arguments = parser.parse_args()
    with open(arguments.driver, encoding="utf-8") as f:
        data = json.load(f)
    major, minor = data["cuda"] // 1000, data["cuda"] % 1000 // 10
    truth = Truth(arguments.truth)
    lines, reached = driver_section(data, truth)
    lines, low = HEAD.format(major=major, minor=minor).splitlines() + [""] + lines, truth.idle()
    low += too_low("driver", reached, arguments.least_driver)
    if arguments.runtime_map:
        more, reached = runtime_section(arguments.runtime_map, arguments.runtime_unsupported, truth)
        lines += more
        low += too_low("runtime", reached, arguments.least_runtime)
    if arguments.source:
        for more, wrong in (refusals_section(arguments.source), attributes_section(arguments.source, arguments.truth)):
            lines += more
            low += wrong
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
    for line in low:
        print(line, file=sys.stderr)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
