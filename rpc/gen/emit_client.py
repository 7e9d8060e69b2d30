# SPDX-License-Identifier: Apache-2.0
"""Emits the client's side: cuda_stubs.c and cuda_entry_points.inc, and the version script of every library."""

import model as model_module
import wire

STUBS = """\
/* Made by rpc/gen from rpc/api/cuda.api and CUDA's headers: do not edit.  Compiled with -D__CUDA_API_VERSION_INTERNAL. */
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

#include "client/conn/call.h"
#include "cuda_codec.h"

/* client/cuda/stream/stream.c: the id of a stream on the wire, where handles such as CU_STREAM_PER_THREAD stand for others. */
CUresult ckt_stream_resolve(CUstream stream, uint64_t *ret_id);
/* client/cuda/context/context.c */
struct ckt_context;
CUresult ckt_client_context_current(struct ckt_context **ret_context);

/* Old versions that the header does not declare in every mode, and declared ones alike. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
"""


def _prototype(function):
    return f"{function.result} CUDAAPI {function.name}({function.parameter_list()})"


def refusal(name, refuse, note=""):
    """The body of a function that is not supported: what refuses names it in the log, once."""
    return ["{" + note, "\tstatic bool once;", f'\treturn {refuse}("{name}", &once);', "}"]


def _unsupported(entry):
    note = f"\t/* {entry.reason} */" if entry.kind == "unknown" else ""
    return [_prototype(entry.function), *refusal(entry.name, "ckt_call_unsupported", note), ""]


def _same(entry):
    passed = ", ".join(p.name for p in entry.function.parameters)
    return [_prototype(entry.function), "{", f"\treturn {entry.target}({passed});", "}", ""]


def _per_thread(entry, target):
    if model_module.adds_stream(entry.function, target):
        passed = [p.name for p in entry.function.parameters] + ["CU_STREAM_PER_THREAD"]
        stream = "CU_STREAM_PER_THREAD"
    else:
        stream = next(p.name for p in entry.function.parameters if p.c == "CUstream")
        passed = [f"{p.name} ? {p.name} : CU_STREAM_PER_THREAD" if p.c == "CUstream" else p.name for p in entry.function.parameters]
    lines = [_prototype(entry.function), "{"]
    if entry.sync:
        return lines + [f"\tCUresult result = {entry.target}({', '.join(passed)});",
                        f"\treturn result ? result : cuStreamSynchronize({stream});", "}", ""]
    return lines + [f"\treturn {entry.target}({', '.join(passed)});", "}", ""]


def _checks(p):
    """Pointers that the driver would refuse, bounds of the wire and streams that are none, decided here."""
    lines = []
    for q in p.parameters:
        if q.parameter.handle == "stream":
            lines += [f"\tuint64_t id_{q.name};", f"\tCUresult resolved_{q.name} = ckt_stream_resolve({q.name}, &id_{q.name});",
                      f"\tif (resolved_{q.name})", f"\t\treturn resolved_{q.name};"]
        if q.way in ("out", "in", "inout", "string"):
            lines += [f"\tif (!{q.name})", "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
        elif q.way == "in_array":
            lines += [f"\tif ((uint64_t){q.count} > {q.type.limit} || ({q.count} && !{q.name}))", "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
        if q.way == "string":
            lines += [f"\tsize_t {q.name}_bytes = strlen({q.name});", f"\tif ({q.name}_bytes > {q.type.limit})",
                      "\t\treturn CUDA_ERROR_INVALID_VALUE;"]
    return lines


def _give(q):
    n = q.name
    if q.way == "value":
        if q.parameter.handle == "stream":
            return f"\t\t.{n} = id_{n},"
        if q.parameter.handle:
            return f"\t\t.{n} = (uint64_t)(uintptr_t){n},"
        return f"\t\t.{n} = {n}," if isinstance(q.type, wire.Struct) else f"\t\t.{n} = ({q.type.c}){n},"
    if q.way in ("in", "inout"):
        return f"\t\t.{n} = *{n}," if isinstance(q.type, wire.Struct) else f"\t\t.{n} = ({q.type.c})*{n},"
    if q.way == "string":
        return f"\t\t.{n} = {n}, .{n}_len = (uint32_t){n}_bytes,"
    if q.way == "in_array":
        kind = "uint8_t" if isinstance(q.type, wire.Bytes) else f"uint{q.type.bits}_t"
        return f"\t\t.{n} = (const {kind} *){n}, .{n}_len = (uint32_t){q.count},"
    return None


def _receive(p):
    """Lines that decode the results and store them behind the caller's pointers, all or nothing."""
    res = f"ckt_{p.name}_res"
    lines = [f"\tstruct {res} res;", f"\tif (!{res}_get(&reply.results, &res)) {{",
             "\t\t/* A worker of the same protocol version does not send this: the connection carries garbage. */",
             "\t\tresult = CUDA_ERROR_UNKNOWN;", "\t} else {"]
    for q in p.parameters:
        if q.way in ("out", "inout"):
            cast = "" if isinstance(q.type, wire.Struct) else f"({q.parameter.type.get_pointee().spelling})"
            lines.append(f"\t\t*{q.name} = {cast}res.{q.name};")
    return lines + ["\t}", "\tckt_call_reply_release(&reply);", "\treturn result;"]


def _call(entry, p):
    lines = [_prototype(entry.function), "{"] + _checks(p)
    size = "0"
    if p.args:
        args = f"ckt_{p.name}_args"
        lines += [f"\tstruct {args} args = {{"] + [line for line in map(_give, p.parameters) if line] + ["\t};"]
        size = f"{args}_size(&args)"
    flags = "CKT_CALL_F_BATCHED" if p.batched else "CKT_CALL_F_NUMBERED" if p.numbered else "0"
    # Whatever is generated is about the current context: a call without one is refused here, not answered for some other.
    lines += ["\tstruct ckt_context *context;", "\tCUresult result = ckt_client_context_current(&context);", "\tif (result)", "\t\treturn result;",
              "\tstruct ckt_call call;", f"\tresult = ckt_call_begin(&call, CKT_PROC_{p.name.upper()}, {size}, {flags});",
              "\tif (result)", "\t\treturn result;"]
    if p.args:
        lines.append(f"\tcall.p = {args}_put(call.p, &args);")
    if p.batched:
        return lines + ["\treturn ckt_call_queue(&call);", "}", ""]
    if not p.results:
        return lines + ["\treturn ckt_call_wait(&call, NULL);", "}", ""]
    lines += ["\tstruct ckt_reply reply;", "\tresult = ckt_call_wait(&call, &reply);", "\tif (result)", "\t\treturn result;"]
    return lines + _receive(p) + ["}", ""]


def _undeclared(name):
    """Its parameters are not known; the caller takes them off the stack."""
    return [f"__attribute__((visibility(\"default\"))) CUresult CUDAAPI {name}(void)",
            *refusal(name, "ckt_call_unsupported"), ""]


def stubs(model):
    procedures = {p.name: p for p in model.procedures if not p.hand}
    lines = [STUBS]
    for entry in model.entries:
        if entry.kind in ("unsupported", "unknown"):
            if entry.function.result != model.library.result:
                raise model.table.error(0, f"{entry.name} gives a {entry.function.result}: write it by hand and list it as local")
            lines += _unsupported(entry)
        elif entry.kind == "same":
            lines += _same(entry)
        elif entry.kind == "per_thread":
            lines += _per_thread(entry, model.headers.functions[entry.target])
        elif entry.kind in ("waits", "batched"):
            lines += _call(entry, procedures[entry.name])
    for name in sorted(model.undeclared):
        lines += _undeclared(name)
    return "\n".join(lines)


def version_script(model):
    names = sorted([e.name for e in model.entries] + list(model.undeclared) + list(model.library.private))
    return f"/* Made by rpc/gen: what {model.library.soname} exports, and nothing else. */\n{{\nglobal:\n" \
        + "".join(f"\t{n};\n" for n in names) + "local:\n\t*;\n};\n"


ENTRY_POINTS = """\
/*
 * Made by rpc/gen from cudaTypedefs.h: do not edit.  For cuGetProcAddress, sorted by name, then by version:
 * CKT_ENTRY_POINT(name, first CUDA version that has it, exported symbol, exported symbol where stream 0 means the per-thread stream)
 */
"""


def entry_points(model):
    rows = [f"CKT_ENTRY_POINT({name}, {version}, {symbol}, {per_thread})" for name, version, symbol, per_thread in model.entry_points()]
    return ENTRY_POINTS + "\n".join(rows) + "\n"
