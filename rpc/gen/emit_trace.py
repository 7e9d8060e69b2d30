# SPDX-License-Identifier: Apache-2.0
"""Emits what records the program's calls (client/trace/trace.h): NAME_traced.h, which every source of the library is compiled with and
which renames the functions that it defines, and NAME_traced.c, whose functions have the exported names and call those."""

import headers as headers_module

NAMES = """\
/* Made by rpc/gen: do not edit.  The sources define the functions under other names; NAME_traced.c exports them. */
"""

SOURCE = """\
/* Made by rpc/gen: do not edit.  The exported functions: each records its call if CRICKET_TRACE or CRICKET_STATS is set. */
{includes}

#include "client/trace/trace.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define TRACED __attribute__((visibility("default")))
"""

STREAMS = ("CUstream", "cudaStream_t")
# Parameters that count bytes, of the functions of memory.
BYTES = ("ByteCount", "bytesize", "bytes", "numbytes", "count", "size")
COPIES = ("CUDA_MEMCPY2D", "CUDA_MEMCPY3D", "CUDA_MEMCPY3D_PEER")
# The bytes of an element that is set.
ELEMENTS = {"D8": 1, "D16": 2, "D32": 4}


def _bytes(name, parameters):
    """A C expression for the bytes that the call moves or allocates; None where its parameters do not say."""
    if "Mem" not in name:
        return None
    names = {n: c for c, n in parameters}
    for element, size in ELEMENTS.items():
        if f"Memset{element}" in name and "N" in names:
            return f"(uint64_t)N * {size}"
    if "width" in names and "height" in names:
        return "(uint64_t)width * height"
    for c, n in parameters:
        bare = c.replace("const ", "").replace(" *", "").replace("_v2", "").replace("_v1", "")
        if bare in COPIES and c.startswith("const "):
            depth = f" * {n}->Depth" if "3D" in bare else ""
            return f"{n} ? (uint64_t){n}->WidthInBytes * {n}->Height{depth} : 0"
        if n in BYTES and c in ("size_t", "unsigned int"):
            return f"(uint64_t){n}"
    return None


def function(name, result, parameters, declarations, category, shown=None, doubled=None):
    """parameters: (C type, name); declarations: the same as C declares them; doubled: what a second exported name has before this one."""
    given = ", ".join(declarations) or "void"
    call = f"{name}({', '.join(n for _, n in parameters)})"
    gives = result != "void"
    streams = [n for c, n in parameters if c in STREAMS]
    size = _bytes(name, parameters)
    record = "struct ckt_trace_record *record_ = " if len(streams) == 1 or size else ""
    # Apart, so that a call that is not recorded moves no argument.
    lines = [f"{result} {name}({given});",
             f"__attribute__((noinline, cold)) static {result} record_{name}({given})", "{",
             f'\tstatic struct ckt_trace_site site_ = {{.name = "{shown or name}", .category = {category}}};',
             f"\t{record}ckt_trace_enter(&site_);"]
    if len(streams) == 1:
        lines.append(f"\tckt_trace_stream(record_, (uint64_t)(uintptr_t){streams[0]});")
    if size:
        lines.append(f"\tckt_trace_bytes(record_, {size});")
    lines += [f"\t{result} result_ = {call};" if gives else f"\t{call};", "\tckt_trace_leave();"]
    lines += (["\treturn result_;"] if gives else []) + ["}", ""]
    back = "return " if gives else ""
    lines += [f'TRACED {result} traced_{name}({given}) __asm__("{name}");', f"TRACED {result} traced_{name}({given})", "{",
              "\tif (__builtin_expect(ckt_trace_get() != NULL, 0))", f"\t\t{back}record_{call};", "\telse",
              f"\t\t{back}{call};"]
    lines.append("}")
    if doubled:
        lines.append(f'TRACED {result} traced_{doubled}{name}({given}) __asm__("{doubled}{name}") __attribute__((alias("{name}")));')
    return lines + [""]


def names(symbols):
    return NAMES + "".join(f"#pragma redefine_extname {name} ckt_api_{name}\n" for name in sorted(symbols))


def _wrapped(model):
    """The functions whose parameters are known; a library's refused functions take none."""
    refused = ("unsupported", "unknown") if model.library.forwarded else ()
    return [e for e in model.entries if e.kind not in refused and e.function]


def model_names(model):
    return names(e.name for e in _wrapped(model))


def model_source(includes, category):
    def emit(model):
        text = includes if includes else "\n".join(
            f'#include "{model.library.c_header}"' if model.library.c_header else f"#include <{name}>"
            for name in (model.library.includes if not model.library.c_header else ("",)))
        # Some headers give a function's name to its newest version by a macro.
        lines = [SOURCE.format(includes=text)] + [f"#undef {entry.name}" for entry in _wrapped(model)] + [""]
        for entry in _wrapped(model):
            f = entry.function
            parameters = [(p.c, p.name) for p in f.parameters]
            lines += function(entry.name, f.result, parameters, [headers_module.declare(p.type, p.name) for p in f.parameters], category,
                              doubled=model.library.doubled)
        return "\n".join(lines)
    return emit
