# SPDX-License-Identifier: Apache-2.0
"""Emits the worker's side: cuda_driver.h/.c (the driver's functions, found by dlopen) and cuda_dispatch.c (handlers and their table)."""

import wire

DRIVER_HEADER = """\
/*
 * Made by rpc/gen from CUDA's headers: do not edit.
 *
 * The driver's functions by exported name, filled once at start, read-only afterwards: any thread may call through it.
 */
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "compile with -D__CUDA_API_VERSION_INTERNAL (cuda_driver_dep does): cuda.h would rename the members otherwise"
#endif

#include <cuda.h>
#include <cudaProfiler.h>
#include <stddef.h>

/* A function that the opened driver lacks is NULL. */
struct ckt_driver {
"""

DRIVER_HEADER_END = """\
};

extern struct ckt_driver ckt_driver;

/*
 * Opens the driver library and fills ckt_driver.  0; -ENOENT where the library cannot be loaded, -ENOEXEC where it has no cuInit:
 * then ret_message holds a sentence for the user and ckt_driver is unchanged.  The library stays loaded as long as the process lives.
 */
int ckt_driver_open(const char *path, char *ret_message, size_t message_bytes);
"""

DRIVER_SOURCE = """\
/* Made by rpc/gen from CUDA's headers: do not edit. */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct ckt_driver ckt_driver;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
"""

DRIVER_SOURCE_END = """\
};

int ckt_driver_open(const char *path, char *ret_message, size_t message_bytes)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *cause = dlerror();
		snprintf(ret_message, message_bytes, "cannot load the driver: %s", cause ? cause : path);
		return -ENOENT;
	}
	struct ckt_driver found;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);
		memcpy((char *)&found + functions[i].offset, &function, sizeof(function));
	}
	if (!found.cuInit) {
		snprintf(ret_message, message_bytes, "%s is not a CUDA driver: it has no cuInit", path);
		dlclose(library);
		return -ENOEXEC;
	}
	ckt_driver = found;
	return 0;
}
"""

DISPATCH = """\
/* Made by rpc/gen from rpc/api/cuda.api: do not edit. */
#include <stdlib.h>
#include <string.h>

#include "cuda_codec.h"
#include "cuda_driver.h"
#include "server/worker/session/call.h"

static inline __attribute__((unused)) void free_pointer(void *p)
{
	free(*(void **)p);
}

#define FREED __attribute__((cleanup(free_pointer), unused))
"""


def driver_header(model):
    # A type of its own spelling would repeat what the header declares: typeof cannot drift from it.
    members = [f"\t__typeof__({name}) *{name};" for name in model.headers.functions]
    return DRIVER_HEADER + "\n".join(members) + "\n" + DRIVER_HEADER_END


def driver_source(model):
    rows = [f'\t{{"{name}", offsetof(struct ckt_driver, {name})}},' for name in model.headers.functions]
    return DRIVER_SOURCE + "\n".join(rows) + "\n" + DRIVER_SOURCE_END


def _bare(ctype):
    """The pointee's type in C without const: what a local variable of it is declared as."""
    return ctype.get_pointee().spelling.replace("const ", "")


def _take(q):
    """Lines that make the driver's argument `v_NAME` from the decoded args; the expression to pass."""
    n, t = q.name, q.type
    if q.way == "value" and q.parameter.handle == "context":
        # 0 is the current context: the executor has made the call's own context current.
        return [f"\tCUcontext v_{n} = NULL;", f"\tif (args.{n} && (result = ckt_object_context(call->worker, args.{n}, &v_{n})))",
                "\t\treturn result;"], f"v_{n}"
    if q.way == "value" and q.parameter.handle:
        return [f"\t{q.parameter.c} v_{n};", f"\tif ((result = ckt_object_{q.parameter.handle}(call->worker, args.{n}, &v_{n})))",
                "\t\treturn result;"], f"v_{n}"
    if q.way == "value":
        return [], f"args.{n}" if isinstance(t, wire.Struct) else f"({q.parameter.c})args.{n}"
    if q.way in ("in", "inout"):
        cast = "" if isinstance(t, wire.Struct) else f"({_bare(q.parameter.type)})"
        return [f"\t{_bare(q.parameter.type)} v_{n} = {cast}args.{n};"], f"&v_{n}"
    if q.way == "out":
        return [f"\t{_bare(q.parameter.type)} v_{n};", f"\tmemset(&v_{n}, 0, sizeof(v_{n}));"], f"&v_{n}"
    if q.way == "string":
        return [f"\tif (memchr(args.{n}, 0, args.{n}_len))", "\t\treturn CKT_WCALL_GARBAGE;",
                f"\tFREED char *v_{n} = strndup(args.{n}, args.{n}_len);", f"\tif (!v_{n})",
                "\t\treturn CUDA_ERROR_OUT_OF_MEMORY;"], f"v_{n}"
    return _take_array(q)


def _take_array(q):
    n, t = q.name, q.type
    element = q.element_c.replace("const ", "")
    lines = [f"\tif (args.{n}_len != (uint64_t)args.{q.count})", "\t\treturn CKT_WCALL_GARBAGE;"]
    if isinstance(t, wire.Bytes):
        # The driver only reads them: they may stay in the message.
        return lines, f"(void *)args.{n}"
    lines += [f"\tFREED {element} *v_{n} = calloc((size_t)args.{n}_len + 1, sizeof({element}));", f"\tif (!v_{n})",
              "\t\treturn CUDA_ERROR_OUT_OF_MEMORY;",
              f"\tfor (uint32_t i = 0; i < args.{n}_len; i++) {{", f"\t\tuint{t.bits}_t word = ckt_xdr_u{t.bits}(args.{n}_xdr, i);",
              f"\t\tmemcpy(&v_{n}[i], &word, sizeof(word));", "\t}"]
    return lines, f"v_{n}"


def _results(p):
    name = f"ckt_{p.name}_res"
    lines = [f"\tstruct {name} res = {{"]
    for q in p.parameters:
        if q.way in ("out", "inout"):
            lines.append(f"\t\t.{q.name} = v_{q.name},")
    return lines + ["\t};", f"\t{name}_put(ckt_wcall_results(call, {name}_size(&res)), &res);"]


def _handler(p):
    lines = ["", f"static int handle_{p.name}(struct ckt_wcall *call)", "{", "\tCUresult result;"]
    if p.args:
        lines += [f"\tstruct ckt_{p.name}_args args;", f"\tif (!ckt_{p.name}_args_get(&call->args, &args))"]
    else:
        lines.append("\tif (!ckt_cursor_done(&call->args))")
    lines += ["\t\treturn CKT_WCALL_GARBAGE;", f"\tif (!ckt_driver.{p.name})", "\t\treturn CUDA_ERROR_NOT_SUPPORTED;"]
    passed = []
    for q in p.parameters:
        take, expression = _take(q)
        lines += take
        passed.append(expression)
    lines.append(f"\tresult = ckt_driver.{p.name}({', '.join(passed)});")
    if not p.results:
        return lines + ["\treturn result;", "}"]
    return lines + ["\tif (result)", "\t\treturn result;"] + _results(p) + ["\treturn CUDA_SUCCESS;", "}"]


def dispatch(model):
    lines = [DISPATCH, "/* Written by hand in server/worker. */"]
    lines += [f"int ckt_worker_{p.name}(struct ckt_wcall *call);" for p in model.procedures if p.hand]
    for p in model.procedures:
        if not p.hand:
            lines += _handler(p)
    lines += ["", "const struct ckt_proc ckt_cuda_procs[] = {"]
    for p in model.procedures:
        flags = " | ".join(f for f, there in (("CKT_PROC_BATCHED", p.batched), ("CKT_PROC_NUMBERED", p.numbered or p.batched)) if there)
        handler = f"{'ckt_worker' if p.hand else 'handle'}_{p.name}"
        lines.append(f'\t[{p.number}] = {{"{p.name}", {handler}, {flags or 0}}},')
    lines += ["};", "const unsigned ckt_cuda_proc_count = sizeof(ckt_cuda_procs) / sizeof(ckt_cuda_procs[0]);"]
    return "\n".join(lines) + "\n"
