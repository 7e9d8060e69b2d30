#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py --table FILE --include DIR [--strict] [OUTPUT ...]: writes the outputs, each a path whose last part stands in OUTPUTS.

A file whose content would be the same is left alone, so that nothing that depends on it is built again.  Without an OUTPUT the table is
checked, and one line about it printed.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True

import declared
import emit_client
import emit_codec
import emit_coverage
import emit_forwarded
import emit_nvml
import emit_roundtrip
import emit_server
import emit_test
import emit_trace
import emit_x
import forwarded
import headers as headers_module
import model as model_module
import table

# What declares types that a library's first header lacks.
TRACED_INCLUDES = {"cublas": '#include "rpc/cublas.h"\n#include <cublasXt.h>'}


def message_outputs(name):
    """Of a library that has messages of its own: its codecs, and what proves them against rpcgen's."""
    return {f"{name}_codec.h": emit_codec.header, f"{name}_codec.c": emit_codec.source, f"{name}_api.x": emit_x.specification,
            "codec_messages.inc": emit_test.messages, f"{name}_messages.inc": emit_test.messages}


def forwarded_outputs(name):
    """Of a library that is served at its own API."""
    versions = table.LIBRARIES[name].versions
    return {**message_outputs(name), f"{name}_stubs.c": emit_forwarded.stubs, f"{name}_refused.c": emit_forwarded.refused,
            f"{name}_functions.h": emit_forwarded.functions_header, f"{name}_functions.c": emit_forwarded.functions_source,
            f"{name}_dispatch.c": emit_forwarded.dispatch, f"{name}_coverage.json": emit_forwarded.coverage,
            f"{name}_roundtrip.inc": emit_roundtrip.tests,
            f"{name}_traced.h": emit_trace.model_names, f"{name}_traced.c": emit_trace.model_source(TRACED_INCLUDES.get(name), "CKT_TRACE_LIBRARY"),
            **{f"{node}.map": emit_forwarded.version_script(node) for node in versions}}


# Library -> outputs.
OUTPUTS = {
    "cuda": {
        **message_outputs("cuda"),
        "cuda_driver.h": emit_server.driver_header,
        "cuda_driver.c": emit_server.driver_source,
        "cuda_dispatch.c": emit_server.dispatch,
        "cuda_stubs.c": emit_client.stubs,
        "libcuda.map": emit_client.version_script,
        "cuda_coverage.json": emit_coverage.data,
        "cuda_entry_points.inc": emit_client.entry_points,
        "cuda_traced.h": emit_trace.model_names,
        "cuda_traced.c": emit_trace.model_source("#include <cuda.h>\n#include <cudaProfiler.h>", "CKT_TRACE_DRIVER"),
    },
    "nvml": {
        "nvml_table.c": emit_nvml.calls,
        "nvml_client.c": emit_nvml.client,
        "nvml.map": emit_client.version_script,
        "nvml.md": emit_nvml.document,
    },
    "cublas": forwarded_outputs("cublas"),
    "cublasLt": forwarded_outputs("cublasLt"),
    "nccl": forwarded_outputs("nccl"),
    "cufft": forwarded_outputs("cufft"),
}


def load(path, include):
    """The table joined with the library's headers; a table that declares every parameter does without them where they are not there."""
    read = table.parse(path)
    if read.library.forwarded:
        return forwarded.ForwardedModel(read, headers_module.Headers(read.library, include))
    if not read.library.declared:
        return model_module.Model(read, headers_module.Headers(read.library, include))
    there = os.path.exists(os.path.join(include, read.library.header))
    return declared.DeclaredModel(read, headers_module.Headers(read.library, include) if there else None)


def write_changed(path, content):
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == content:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


def summary(model):
    """For Meson's summary: the functions that the table has not heard of are named."""
    unsupported = sum(e.kind in ("unsupported", "unknown") for e in model.entries)
    name = model.library.name
    if model.library.version_macro:
        name = f"{name.upper()} {model.headers.version // 1000}.{model.headers.version % 1000 // 10}"
    text = f"{name}: {len(model.entries)} functions, {len(model.entries) - unsupported} implemented"
    unknown = [e.name for e in model.unknown()]
    return text + (f", {len(unknown)} unknown to the table: {' '.join(unknown)}" if unknown else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--include", required=True, help="directory of the library's headers")
    parser.add_argument("--strict", action="store_true", help="fail when the headers hold functions that the table does not know")
    parser.add_argument("outputs", nargs="*", metavar="OUTPUT", help="path of an output; its name says what it is: " +
                        " ".join(name for outputs in OUTPUTS.values() for name in outputs))
    arguments = parser.parse_args()
    try:
        model = load(arguments.table, arguments.include)
        outputs = OUTPUTS[model.library.name]
        for path in arguments.outputs:
            if os.path.basename(path) not in outputs:
                parser.error(f"nothing makes {os.path.basename(path)} of a table of {model.library.name}")
        made = [(path, outputs[os.path.basename(path)](model)) for path in arguments.outputs]
    except (table.TableError, headers_module.HeaderError) as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.strict and model.unknown():
        print(f"{arguments.table}: {model.library.header} has functions that the table does not know; add a line for each:", file=sys.stderr)
        for entry in model.unknown():
            print(f"  {entry.name}", file=sys.stderr)
        return 1
    for path, content in made:
        write_changed(path, content)
    if not arguments.outputs:
        print(summary(model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
