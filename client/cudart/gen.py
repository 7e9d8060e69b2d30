#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates what follows from the list of the runtime's functions.

gen.py cudart --include DIR --names FILE --unsupported FILE --map OUT --source OUT --refused OUT [--strict] SOURCE...
    The exported names are those that the headers declare plus those of --names.  OUT get the version script; a C source with
    NAME_ptsz and NAME_ptds where only NAME or ckt_rt_NAME is written by hand, the same code on the calling thread's own default
    stream; and a C source with a function that answers cudaErrorNotSupported for every name listed in --unsupported (a name may
    end in *) and for names that nobody has heard of (a newer toolkit's), which fail the build with --strict.
gen.py summary --include DIR --names FILE --unsupported FILE [--strict] SOURCE...
    Prints how many functions there are and names those that nobody has heard of.
gen.py stub --include DIR OUT
    A C source that defines every function of cuda.h, to link against; nothing calls into it.
"""
import argparse
import fnmatch
import os
import re
import sys

import clang.cindex as clang

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "rpc", "gen"))
import emit_trace  # noqa: E402
import libclang  # noqa: E402

RUNTIME_HEADERS = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda_runtime_api.h>\n#include <cuda_profiler_api.h>\n"
DRIVER_HEADERS = "#include <cuda.h>\n#include <cudaProfiler.h>\n"
# Declared by a header of nvcc's alone: what a program launches with, and the name that the program's author knows.
LAUNCHES = {name: ("cudaError_t", [("cudaKernel_t", "kernel"), ("dim3", "grid"), ("dim3", "block"), ("void **", "args"), ("size_t", "shared"),
                                   ("cudaStream_t", "stream")]) for name in ("__cudaLaunchKernel", "__cudaLaunchKernel_ptsz")}
PER_THREAD = "((cudaStream_t)0x2)"


def functions(text, include, arguments=()):
    """Name -> (result type, [(type, name)]) of every function that the headers declare."""
    unit = libclang.parse("headers.c", text, include, arguments)
    errors = [d for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
    if errors:
        sys.exit("gen.py: %s" % errors[0])
    found = {}

    def walk(node):
        for child in node.get_children():
            if child.kind == clang.CursorKind.FUNCTION_DECL:
                found[child.spelling] = (child.result_type.spelling, [(a.type.spelling, a.spelling) for a in child.get_arguments()])
            elif child.kind in (clang.CursorKind.LINKAGE_SPEC, clang.CursorKind.UNEXPOSED_DECL):
                walk(child)

    walk(unit.cursor)
    return found


def read_list(path):
    """Lines 'NAME [reason]'; '#' starts a comment."""
    entries = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                name, _, reason = line.partition(" ")
                entries[name] = reason.strip()
    return entries


def defined(paths):
    """Names of the functions that the hand-written sources define."""
    names = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            names.update(re.findall(r"^[A-Za-z_][\w \*]*?\b(\w+)\([^;{]*\)\s*\{", file.read(), re.M))
    return names


def declarator(kind, name):
    """'type name' for a parameter; arrays and function pointers do not occur in the runtime's prototypes."""
    return "%s%s%s" % (kind, "" if kind.endswith("*") else " ", name)


def prototype(name, result, parameters):
    return "%s %s(%s)" % (result, name, ", ".join(declarator(t, n) for t, n in parameters) or "void")


def per_thread_variant(name, declared, written):
    """The C text of NAME_ptsz/_ptds (and of NAME where both come from ckt_rt_NAME), or None where there is nothing to make it of."""
    base = name[:-5]
    result, parameters = declared[base]
    arguments = [n for _, n in parameters]
    internal = "ckt_rt_" + base
    if name.endswith("_ptds") and internal in written:
        variant = prototype(name, result, parameters)
        return "%s\n{\n\treturn %s(%s);\n}\n%s;\n%s\n{\n\treturn %s(%s);\n}\n" % (
            prototype(base, result, parameters), internal, ", ".join(arguments + ["0"]),
            variant, variant, internal, ", ".join(arguments + [PER_THREAD]))
    if name.endswith("_ptsz") and base in written:
        streams = [n for t, n in parameters if t == "cudaStream_t"]
        if len(streams) != 1:
            return None
        passed = ["%s ? %s : %s" % (n, n, PER_THREAD) if n == streams[0] else n for n in arguments]
        variant = prototype(name, result, parameters)
        return "%s;\n%s\n{\n\treturn %s(%s);\n}\n" % (variant, variant, base, ", ".join(passed))
    return None


def classify(arguments):
    """The whole list of names; C texts of variants; names refused; those of them that nobody has heard of."""
    declared = {n: f for n, f in functions(RUNTIME_HEADERS, arguments.include).items() if n.startswith(("cuda", "__cuda"))}
    names = sorted(set(declared) | set(read_list(arguments.names)))
    reasons = read_list(arguments.unsupported)
    written = defined(arguments.sources)
    variants, made, refused, unknown, used = [], set(), [], [], set()
    for name in names:
        if name[-5:] in ("_ptsz", "_ptds") and name not in written and name in declared and name[:-5] in declared:
            text = per_thread_variant(name, declared, written)
            if text:
                variants.append(text)
                made.update((name, name[:-5]))
    for name in names:
        patterns = [p for p in reasons if fnmatch.fnmatchcase(name, p)]
        used.update(patterns)
        if name in written or name in made:
            if patterns:
                sys.exit("gen.py: %s is written and yet listed in %s" % (name, arguments.unsupported))
            continue
        refused.append(name)
        if not patterns:
            unknown.append(name)
    stale = set(reasons) - used
    if stale:
        sys.exit("gen.py: %s lists what no header declares: %s" % (arguments.unsupported, ", ".join(sorted(stale))))
    if unknown and arguments.strict:
        sys.exit("gen.py: strict-api: add to a source or to %s: %s" % (arguments.unsupported, ", ".join(unknown)))
    return names, variants, refused, unknown, declared


def summarise(arguments):
    names, _, refused, unknown, _ = classify(arguments)
    print("%d functions, %d implemented%s" % (len(names), len(names) - len(refused),
                                              "; not known yet: " + ", ".join(unknown) if unknown else ""))


def write_traced(arguments, names, declared):
    """The exported functions, which record their calls; rpc/gen/emit_trace.py."""
    known = {**{name: declared[name] for name in names if name in declared}, **LAUNCHES}
    with open(arguments.traced_names, "w", encoding="utf-8") as out:
        out.write(emit_trace.names(known))
    lines = [emit_trace.SOURCE.format(includes="#include <cuda_runtime_api.h>\n#include <cuda_profiler_api.h>")]
    for name, (result, parameters) in sorted(known.items()):
        lines += emit_trace.function(name, result, parameters, [declarator(t, n) for t, n in parameters], "CKT_TRACE_RUNTIME", name.lstrip("_"))
    with open(arguments.traced, "w", encoding="utf-8") as out:
        out.write("\n".join(lines))


def generate_runtime(arguments):
    names, variants, refused, _, declared = classify(arguments)
    write_traced(arguments, names, declared)
    with open(arguments.map, "w", encoding="utf-8") as out:
        out.write("libcudart.so.13 {\nglobal:\n%slocal:\n\t*;\n};\n" % "".join("\t%s;\n" % n for n in names))
    with open(arguments.source, "w", encoding="utf-8") as out:
        out.write('/* Generated by client/cudart/gen.py. */\n#include <cuda_profiler_api.h>\n'
                  '#include "client/cudart/api.h"\n#include "client/cudart/variants.h"\n#pragma GCC visibility push(default)\n'
                  '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"\n\n')
        out.write("\n".join(variants))
    with open(arguments.refused, "w", encoding="utf-8") as out:
        # Without the headers: a function that takes nothing may stand for any of C's parameter lists on the ABIs we build for.
        out.write("/* Generated by client/cudart/gen.py. */\n#include <stdbool.h>\nint ckt_rt_unsupported(const char *name, bool *once);\n"
                  "#pragma GCC visibility push(default)\n")
        for name in refused:
            out.write('int %s(void);\nint %s(void)\n{\n\tstatic bool once;\n\treturn ckt_rt_unsupported("%s", &once);\n}\n' % (name, name, name))


def generate_stub(arguments):
    names = set(functions(DRIVER_HEADERS, arguments.include))
    names |= set(functions(DRIVER_HEADERS, arguments.include, ["-D__CUDA_API_VERSION_INTERNAL"]))
    names |= set(functions(DRIVER_HEADERS, arguments.include, ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]))
    with open(arguments.output, "w", encoding="utf-8") as out:
        out.write("/* Generated by client/cudart/gen.py: names to link against. */\n#pragma GCC visibility push(default)\n")
        for name in sorted(n for n in names if re.match(r"cu[A-Z]", n)):
            out.write("int %s(void);\nint %s(void)\n{\n\treturn 801;\n}\n" % (name, name))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for command, outputs in (("cudart", ("map", "source", "refused", "traced-names", "traced")), ("summary", ())):
        runtime = commands.add_parser(command)
        for option in ("include", "names", "unsupported") + outputs:
            runtime.add_argument("--" + option, required=True)
        runtime.add_argument("--strict", action="store_true")
        runtime.add_argument("sources", nargs="+")
    stub = commands.add_parser("stub")
    stub.add_argument("--include", required=True)
    stub.add_argument("output")
    arguments = parser.parse_args()
    {"cudart": generate_runtime, "summary": summarise, "stub": generate_stub}[arguments.command](arguments)


main()
