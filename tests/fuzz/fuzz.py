#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets, measures which lines of the decoders they reach, and keeps their corpora.

	fuzz.py run --build DIR [--seconds N] [TARGET ...]	N core-seconds each (default 60); prints a table; what is found stays in DIR
	fuzz.py corpus --build DIR [TARGET ...]		runs every input of the kept corpora once; fails where they reach less than before
	fuzz.py bounded --build DIR TARGET		a share of CKT_FUZZ_SECONDS (default 100, for all targets together)
	fuzz.py keep --build DIR [TARGET ...]		makes the kept corpora again: the smallest inputs that reach as much as all that is known
	fuzz.py lines --build DIR TARGET		the lines of the target's decoders that its corpus does not reach
	fuzz.py floors --build DIR [TARGET ...]		what the kept corpora reach of each file, as targets.txt has it

--build names build/fuzz/tests/fuzz.  What `run` learns stays in DIR/grown/TARGET, from where `keep` takes it.
"""

import argparse
import io
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
GOAL = 95.0
SECONDS_OF_ALL, SECONDS_OF_ONE = 100, 60
SKIPPED = 77
# An archive may not grow beyond that: what an input more would reach is then not worth its bytes.
ARCHIVE_BYTES_MAX = 160 << 10


class Target:
    """One line of targets.txt, and the lines of its files."""

    def __init__(self, line):
        name, mib, longest = line.split()
        # {file: the percent of its lines that the kept corpus must reach}
        self.name, self.mib, self.longest, self.floors = name, int(mib), int(longest), {}

    def archive(self):
        return os.path.join(HERE, "corpus", self.name + ".tar.xz")


def read_targets():
    targets = []
    with open(os.path.join(HERE, "targets.txt"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("\t"):
                floor, file = line.split()
                targets[-1].floors[file] = int(floor)
            elif line.strip() and not line.startswith(("#", "-")):
                targets.append(Target(line))
    return {target.name: target for target in targets}


def program(build, target):
    return os.path.join(os.path.abspath(build), "fuzz_" + target.name)


def unpack(build, target, directory):
    """The kept corpus and the target's own seeds."""
    os.makedirs(directory, exist_ok=True)
    if os.path.exists(target.archive()):
        with tarfile.open(target.archive()) as tar:
            for member in tar.getmembers():
                with open(os.path.join(directory, os.path.basename(member.name)), "wb") as f:
                    f.write(tar.extractfile(member).read())
    subprocess.run([program(build, target)], env={**os.environ, "CKT_FUZZ_SEEDS": directory, "LLVM_PROFILE_FILE": os.devnull}, check=True)


def gather(target, directory):
    """Valid inputs from our own tests, for targets that have such."""
    if target.name == "ptx":
        subprocess.run([sys.executable, os.path.join(HERE, "ptx_seeds.py"), directory], check=True)
    if target.name == "image":
        images = os.path.join(TOP, "tests", "images")
        for name in sorted(os.listdir(images)):
            with tarfile.open(os.path.join(images, name)) as tar:
                manifest = tar.extractfile("./manifest").read()
            # The minor version, no fault, no failing allocation, a GPU that fits; then the body (fuzz_image.c).
            with open(os.path.join(directory, "image-" + name), "wb") as f:
                f.write(bytes([int.from_bytes(manifest[8:12], "big"), 0x40, 0, 0]) + manifest[52:])


def limits_of(target):
    """An input may cost what targets.txt says, not more."""
    return [f"-max_len={target.longest}", "-timeout=20", f"-rss_limit_mb={target.mib + 1024}", f"-malloc_limit_mb={target.mib}"]


def fuzz(build, target, corpora, *more):
    """(exit status, executions, what it printed).  A leak is a finding."""
    command = [program(build, target), *limits_of(target), "-print_final_stats=1", f"-artifact_prefix={os.path.abspath(build)}/{target.name}-",
               *more, *corpora]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          env={"LLVM_PROFILE_FILE": os.devnull, **os.environ})
    ran = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stdout)
    return done.returncode, int(ran.group(1)) if ran else 0, done.stdout


def tool(name):
    """The tool of the compiler's own version, or None."""
    found = subprocess.run(["clang", "-print-prog-name=" + name], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return shutil.which(found) or shutil.which(name)


def read_lcov(text):
    """{file: ({line: count}, [(line, function)])}"""
    files = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            lines, functions = files.setdefault(os.path.relpath(os.path.realpath(rest), TOP), ({}, []))
        elif kind == "DA":
            number, count = rest.split(",")[:2]
            lines[int(number)] = int(count)
        elif kind == "FN":
            number, name = rest.split(",")[:2]
            functions.append((int(number), name.rpartition(":")[2]))
    return files


def lines_of(file, files):
    """{line: count} of a file of targets.txt, or of PATH@FIRST-LAST: from one function to another, both included."""
    path, _, span = file.partition("@")
    lines, functions = files.get(path, ({}, []))
    if not span:
        return lines
    first, last = span.split("-")
    begins = sorted(functions)
    names = [name for _, name in begins]
    if first not in names or last not in names:
        raise SystemExit(f"tests/fuzz/targets.txt: {file} names a function that is not there")
    end = begins[names.index(last) + 1][0] if names.index(last) + 1 < len(begins) else max(lines) + 1
    return {number: count for number, count in lines.items() if begins[names.index(first)][0] <= number < end}


def measure(build, target, corpora):
    """{file: {line: count}} of one run over the corpora, and its exit status; None without llvm-cov."""
    profdata, cov = tool("llvm-profdata"), tool("llvm-cov")
    with tempfile.TemporaryDirectory() as directory:
        raw, merged = os.path.join(directory, "raw"), os.path.join(directory, "merged")
        os.environ["LLVM_PROFILE_FILE"] = raw
        status, _, said = fuzz(build, target, corpora, "-runs=0")
        del os.environ["LLVM_PROFILE_FILE"]
        if status:
            print(said[-6000:])
        if status or not profdata or not cov:
            return None, status
        subprocess.run([profdata, "merge", "-sparse", "-o", merged, raw], check=True)
        export = [cov, "export", "-format=lcov", program(build, target), "-instr-profile=" + merged]
        sources = [os.path.join(TOP, path.partition("@")[0]) for path in target.floors]
        files = read_lcov(subprocess.run([*export, *sources], stdout=subprocess.PIPE, text=True, check=True).stdout)
    return {file: lines_of(file, files) for file in target.floors}, status


def pair_of(lines):
    return sum(1 for count in lines.values() if count), len(lines)


def percent(pairs):
    covered, count = (sum(numbers) for numbers in zip(*pairs))
    return 100.0 * covered / count if count else 0.0


def share_of(reached):
    return percent([pair_of(lines) for lines in reached.values()])


def print_files(target, reached):
    """The decoders of a target below the goal, or below their floor; False if there are any of these."""
    good = True
    for path, lines in reached.items():
        covered, count = pair_of(lines)
        share, floor = percent([(covered, count)]), target.floors[path]
        if share < max(GOAL, floor):
            said = f", less than the {floor}% of tests/fuzz/targets.txt: make the corpus again with ./run fuzz and fuzz.py keep" if share < floor else f", below {GOAL:.0f}%"
            print(f"{target.name}: {path}: {covered} of {count} lines ({share:.1f}%){said}")
        good = good and share >= floor
    return good


def command_run(args, targets):
    good = True
    rows = ["| target | core-seconds | executions | inputs | lines of its decoders | findings |", "|---|--:|--:|--:|--:|---|"]
    for target in targets:
        grown = os.path.join(args.build, "grown", target.name)
        unpack(args.build, target, grown)
        status, ran, said = fuzz(args.build, target, [grown], f"-max_total_time={args.seconds}", "-verbosity=0")
        if status:
            print(said[-6000:])
        reached, _ = measure(args.build, target, [grown])
        share = f"{share_of(reached):.1f}%" if reached else "not measured"
        rows.append(f"| `{target.name}` | {args.seconds} | {ran} | {len(os.listdir(grown))} | {share} | {'1' if status else 'none'} |")
        print(rows[-1], flush=True)
        if reached:
            print_files(target, reached)
        good = good and not status
    print("\n".join(rows))
    return good


def command_corpus(args, targets):
    good, measured = True, True
    for target in targets:
        with tempfile.TemporaryDirectory() as directory:
            unpack(args.build, target, directory)
            count = len(os.listdir(directory))
            reached, status = measure(args.build, target, [directory])
        measured = measured and (reached is not None or status)
        if reached:
            good = print_files(target, reached) and good
            print(f"{target.name}: {count} inputs, {share_of(reached):.1f}% of the lines of its decoders", flush=True)
        good = good and not status
    if not measured:
        print("no llvm-cov: the inputs ran, and nobody looked which lines they reach")
    return good


def core_seconds():
    """Of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command_bounded(args, targets):
    """Other tests may run beside: what counts is processor time, and a process that got little of it is followed by another."""
    seconds = max(int(os.environ.get("CKT_FUZZ_SECONDS", SECONDS_OF_ALL)) // len(read_targets()), 1)
    for target in targets:
        status, runs = 0, 0
        with tempfile.TemporaryDirectory() as directory:
            unpack(args.build, target, directory)
            began = core_seconds()
            while not status and core_seconds() - began < seconds:
                left = math.ceil(seconds - (core_seconds() - began))
                status, ran, said = fuzz(args.build, target, [directory], f"-max_total_time={left}", "-verbosity=0")
                runs += ran
            used = core_seconds() - began
        print(said[-6000:] if status else f"{target.name}: {runs} executions in {used:.0f} core-seconds")
        if status:
            return False
    return True


def pack(directory, archive):
    """The same bytes for the same inputs.  Smaller ones first, as long as there is room."""
    names = sorted(os.listdir(directory), key=lambda name: (os.path.getsize(os.path.join(directory, name)), name))
    os.makedirs(os.path.dirname(archive), exist_ok=True)
    while True:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:xz", format=tarfile.USTAR_FORMAT, preset=9) as tar:
            for number, name in enumerate(names):
                info = tarfile.TarInfo(f"{number:04d}")
                info.size = os.path.getsize(os.path.join(directory, name))
                with open(os.path.join(directory, name), "rb") as f:
                    tar.addfile(info, f)
        if len(stream.getvalue()) <= ARCHIVE_BYTES_MAX:
            break
        names = names[: len(names) * 9 // 10]
    with open(archive, "wb") as f:
        f.write(stream.getvalue())
    return len(names), len(stream.getvalue())


def command_keep(args, targets):
    for target in targets:
        grown = os.path.join(args.build, "grown", target.name)
        unpack(args.build, target, grown)
        gather(target, grown)
        with tempfile.TemporaryDirectory() as directory:
            status, _, said = fuzz(args.build, target, [directory, grown], "-merge=1", "-verbosity=0")
            if status:
                print(said[-6000:])
                return False
            count, size = pack(directory, target.archive())
            print(f"{target.name}: {count} inputs in {size} bytes")
    return True


def command_lines(args, targets):
    for target in targets:
        with tempfile.TemporaryDirectory() as directory:
            unpack(args.build, target, directory)
            reached, _ = measure(args.build, target, [directory, os.path.join(args.build, "grown", target.name)])
        for file, lines in (reached or {}).items():
            path = file.partition("@")[0]
            with open(os.path.join(TOP, path), encoding="utf-8") as f:
                text = f.read().splitlines()
            for number, count in sorted(lines.items()):
                if not count:
                    print(f"{path}:{number}: {text[number - 1].strip()}")
    return True


def targets_of(parser, words):
    """The targets of the command line: all, where it names none."""
    known = read_targets()
    names = [name.removeprefix("fuzz_") for name in words] or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"unknown target '{unknown[0]}'; targets are {', '.join(known)}")
    return [known[name] for name in names]


def command_floors(args, targets):
    for target in targets:
        with tempfile.TemporaryDirectory() as directory:
            unpack(args.build, target, directory)
            reached, _ = measure(args.build, target, [directory])
        print(f"{target.name:<8}{target.mib} {target.longest}")
        for file, lines in (reached or {}).items():
            print(f"\t{int(share_of({file: lines}))} {file}", flush=True)
    return True


def main():
    commands = {"run": command_run, "corpus": command_corpus, "bounded": command_bounded, "keep": command_keep, "lines": command_lines, "floors": command_floors}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=commands)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=int, default=SECONDS_OF_ONE)
    parser.add_argument("targets", nargs="*")
    args = parser.parse_intermixed_args()
    if not commands[args.command](args, targets_of(parser, args.targets)):
        sys.exit(1)


if __name__ == "__main__":
    main()
