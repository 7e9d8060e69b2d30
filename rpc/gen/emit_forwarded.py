# SPDX-License-Identifier: Apache-2.0
"""Emits both sides of a library that is served at its own API: NAME_stubs.c, NAME_refused.c, NAME_functions.h and .c, NAME_dispatch.c,
the version scripts libNAME.so.MAJOR.map, and NAME_coverage.json."""

import json
import re

import headers as headers_module
import wire
from emit_client import refusal

STUBS = """\
/* Made by rpc/gen from rpc/api/{name}.api and {title}'s headers: do not edit. */
#pragma GCC visibility push(default)
{includes}
#pragma GCC visibility pop

#include "client/libs/libs.h"
#include "{client}"
#include "{name}_codec.h"

/* Some are declared in C++ alone. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define EXPORT __attribute__((visibility("default")))
"""

REFUSED = """\
/* Made by rpc/gen from rpc/api/{name}.api: do not edit.  What is not supported: its parameters do not matter, and no header declares it here. */
#include <stdbool.h>

int ckt_{name}_unsupported(const char *name, bool *once);

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define EXPORT __attribute__((visibility("default")))
"""

FUNCTIONS = """\
/* Made by rpc/gen from {title}'s headers: do not edit.  The genuine library's functions, once it is open (server/worker/libs/load.c). */
#pragma once

{includes}

#include "server/worker/libs/libs.h"

/* Types of the library's objects: struct ckt_library_object. */
enum {{
{types}
}};

/* A function that the opened library lacks is NULL. */
struct ckt_{name}_functions {{
"""

DISPATCH = """\
/* Made by rpc/gen from rpc/api/{name}.api: do not edit. */
#include <stdlib.h>
#include <string.h>

#include "{name}_codec.h"
#include "{name}_functions.h"
#include "server/worker/libs/library_long_call.h"
#include "server/worker/libs/call.h"
#include "server/worker/libs/{name}/{name}.h"

"""


def _includes(library):
    """What declares the library's functions to C."""
    return f'#include "{library.c_header}"' if library.c_header else "\n".join(f"#include <{name}>" for name in library.includes)


def _prototype(function, name=None):
    return f"{function.result} {name or function.name}({function.parameter_list()})"


# ---- The client

def _status(library, result, status="0", executes=False):
    return f"ckt_{library.name}_{'executed' if executes else 'answer'}({result}, {status})"


def _stub_checks(library, p):
    lines = []
    for q in p.of("object"):
        lines += [f"\tstruct ckt_lib_object *own_{q.name} = ckt_{library.name}_take_{q.parameter.handle}({q.name});", f"\tif (!own_{q.name})",
                  f"\t\treturn ckt_{library.name}_no_{q.parameter.handle}();"]
    if p.executes:
        lines += ["\tuint64_t stream_;", f"\t{library.result} ready_ = ckt_{library.name}_ready(own_{p.object.name}, &stream_);", "\tif (ready_)",
                  "\t\treturn ready_;"]
    refused = [f"!({expression})" for expression in p.checks]
    for q in p.parameters:
        if q.way == "in_array":
            # A message tells an array that is NULL by its having no elements.
            some = f"{q.count} < 1" if q.null else f"{q.count} < 0"
            there = "" if q.null else f"({q.count} && !{q.name}) || "
            refused.append(f"{some} || (uint64_t){q.count} > {q.limit} || {there}(size_t)({q.size}) * (size_t){q.count} > {q.type.limit}")
        elif q.way in ("in", "out", "result", "update"):
            refused.append(f"!{q.name}")
        elif q.way == "string":
            refused.append(f"!{q.name} || strlen({q.name}) > {q.limit}")
    if refused:
        lines += ["\tif (" + " ||\n\t    ".join(f"({r})" if "||" in r else r for r in refused) + ")",
                  f"\t\treturn ckt_{library.name}_invalid();"]
    return lines


def _field(p, q):
    """An initialiser of the message's struct; None where it is filled otherwise."""
    n = q.name
    if q.way == "object":
        return f".{n} = own_{n}->id,"
    if q.way == "value":
        return f".{n} = {n}," if isinstance(q.type, wire.Struct) else f".{n} = ({q.type.c}){n},"
    if q.way == "in":
        return f".{n} = *{n}," if isinstance(q.type, wire.Struct) else f".{n} = ({q.type.c})*{n},"
    if q.way == "in_array":
        size = f"(uint32_t)((size_t)({q.size}) * (size_t){q.count})"
        return f".{n} = (const uint8_t *){n}, .{n}_len = {f'{n} ? {size} : 0' if q.null else size},"
    if q.way == "string":
        return f".{n} = {n}, .{n}_len = (uint32_t)strlen({n}),"
    return None


def _addresses(model, p):
    """Lines that bring what host and device share to the device, and device addresses into the message."""
    if model.carries_streams and not p.executes:
        return [f"\tCUresult result_ = ckt_{model.library.name}_enter();"] + [f"\targs_.{q.name} = (uintptr_t){q.name};" for q in p.of("device")]
    mode = f"own_{p.object.name}->pointer_mode" if p.object else "0"
    stream = "stream_" if p.executes else f"own_{p.object.name}->stream" if p.object else "0"
    lines, at = [], []
    for q in p.of("device"):
        at.append((q, f"(uintptr_t){q.name}"))
    for q in p.of("result"):
        at.append((q, f"{mode} ? (uintptr_t){q.name} : 0"))
    if at:
        lines.append("\tuint64_t at_[] = {" + ", ".join(expression for _, expression in at) + "};")
    given = ("at_", len(at)) if at else ("NULL", 0)
    lines.append(f"\tCUresult result_ = client_->before_work({stream}, {given[0]}, {given[1]});")
    for q in p.of("stream"):
        lines += ["\tif (!result_)", f"\t\tresult_ = client_->stream((CUstream){q.name}, &args_.{q.name});"]
    return lines + [f"\targs_.{q.name} = at_[{i}];" for i, (q, _) in enumerate(at)]


def _scalars(library, p):
    lines = []
    for q in p.of("scalar", "update"):
        lines += [f"\tif (!ckt_lib_scalar{'_or_zero' if q.null else ''}(args_.{q.name}, sizeof(args_.{q.name}), own_{p.object.name}->pointer_mode, {q.name}, {q.size}))",
                  f"\t\treturn ckt_{library.name}_invalid();"]
    return lines


def _take_results(library, p):
    lines = [f"\tstruct ckt_{p.name}_res res_;", "\tstruct ckt_reply reply_;", "\tresult_ = client_->wait(&call_, &reply_);", "\tif (result_)",
             f"\t\treturn {_status(library, 'result_')};", f"\tif (!ckt_{p.name}_res_get(&reply_.results, &res_))",
             "\t\tresult_ = CUDA_ERROR_UNKNOWN;"]
    outs = p.of("out")
    done = [f"*{q.name} = {'' if isinstance(q.type, wire.Struct) else f'(__typeof__(*{q.name}))'}res_.{q.name};" for q in outs]
    if done:
        lines.append("\telse if (!res_.status) {" if len(done) > 1 else "\telse if (!res_.status)")
        lines += [f"\t\t{line}" for line in done] + (["\t}"] if len(done) > 1 else [])
    lines.append("\tclient_->release(&reply_);")
    if p.afterwards:
        # What comes afterwards may be a call of its own.
        lines += ["\tif (!result_ && !res_.status) {"] + [f"\t\t{expression};" for expression in p.afterwards] + ["\t}"]
    return lines + [f"\treturn {_status(library, 'result_', 'result_ ? 0 : res_.status')};"]


def _send(library, p):
    lines = ["\tint status_ = 0;"] if p.batched else []
    if p.gives_values:
        lines.append(f"\tif (own_{p.object.name}->pointer_mode) {{")
        lines += ["\t\tresult_ = client_->queue_status(&call_, &status_);", f"\t\treturn {_status(library, 'result_', 'status_')};", "\t}",
                  "\tconst struct ckt_lib_value values_[] = {"]
        for q in p.of("result", "update"):
            lines.append(f"\t\t{{{q.name}, {q.size}, {p.value_place(q)}}},")
        lines += ["\t};", f"\tresult_ = ckt_lib_wait_values(client_, &call_, values_, {len(p.of('result', 'update'))}, &status_);",
                  f"\treturn {_status(library, 'result_', 'status_')};"]
    elif p.batched:
        queued = "client_->queue_status(&call_, &status_)"
        lines += [f"\tresult_ = {f'taken_ ? {queued} : ckt_lib_learn(client_, &call_, content_, &status_)' if p.learns else queued};",
                  f"\treturn {_status(library, 'result_', 'status_', p.executes)};"]
    else:
        lines += _take_results(library, p)
    return lines


def _flags(p):
    if not p.batched:
        return "CKT_CALL_F_NUMBERED" if p.numbered else "0"
    if p.gives_values:
        return f"own_{p.object.name}->pointer_mode ? CKT_CALL_F_BATCHED : CKT_CALL_F_NUMBERED"
    return "taken_ ? CKT_CALL_F_BATCHED : CKT_CALL_F_NUMBERED" if p.learns else "CKT_CALL_F_BATCHED"


def _content(p, number):
    """What the status of the call depends on: constants as they are, and of numbers and addresses what they are multiples of."""
    words = [number, "client_->context()"] + ([f"own_{p.object.name}->pointer_mode"] if p.has_mode else [])
    for q in p.of("value", "device"):
        if isinstance(q.type, wire.Struct):
            continue
        value = f"(uint64_t)args_.{q.name}"
        words.append(value if q.way == "value" and q.parameter.canonical.kind.name == "ENUM" else f"ckt_lib_number({value})")
    return ["\tconst uint64_t words_[] = {" + ", ".join(words) + "};",
            "\tuint64_t content_ = ckt_lib_content(words_, sizeof(words_) / sizeof(*words_));", "\tbool taken_ = ckt_lib_taken(content_);"]


def _stub(model, p):
    """Declared first, because gcc renames (emit_trace.py) a function only where it was declared before it is defined."""
    library = model.library
    lines = ["EXPORT " + _prototype(p.function) + ";", "EXPORT " + _prototype(p.function), "{"] + ([f"\t{library.logged}"] if library.logged else []) + _stub_checks(library, p)
    fields = [f".pointer_mode = own_{p.object.name}->pointer_mode,"] if p.has_mode else []
    fields += [".stream = stream_,"] if p.executes else []
    fields += [f for f in (_field(p, q) for q in p.parameters) if f]
    lines += ["\tconst struct ckt_client_table *client_ = ckt_client();", f"\tstruct ckt_{p.name}_args args_ = {{"]
    lines += [f"\t\t{f}" for f in fields] + ["\t};"] + _scalars(library, p) + _addresses(model, p)
    number = f"CKT_LIB_PROC(CKT_LIB_{library.name.upper()}, {library.enumerator(p.name)})"
    if p.batched and p.object and (p.executes or not model.carries_streams):
        on = "stream_, 0" if p.executes else f"own_{p.object.name}->stream, own_{p.object.name}->workspace"
        # A scalar of the host's cannot come back from a capture, and CUDA refuses that too.
        lines += [f"\tif (__builtin_expect(result_ == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0){' && own_' + p.object.name + '->pointer_mode' if p.gives_values else ''})",
                  f"\t\treturn {_status(library, f'CKT_LIB_CAPTURE(client_, {on}, {number}, {p.name}, &args_)', executes=p.executes)};"]
    lines += _content(p, number) if p.learns else []
    lines += ["\tstruct ckt_call call_;", "\tif (!result_)",
              f"\t\tresult_ = client_->begin(&call_, {number}, ckt_{p.name}_args_size(&args_), {_flags(p)});", "\tif (result_)",
              f"\t\treturn {_status(library, 'result_', executes=p.executes)};", f"\tcall_.p = ckt_{p.name}_args_put(call_.p, &args_);"]
    return lines + _send(library, p) + ["}", ""]


def _same(entry):
    passed = ", ".join(q.name for q in entry.function.parameters)
    return ["EXPORT " + _prototype(entry.function), "{", f"\treturn {entry.target}({passed});", "}", ""]


def _legacy(model, entry):
    """The API without handles: characters for enums, scalars and results by value."""
    name, function = model.library.name, entry.function
    taken = model.headers.functions[entry.target].parameters[1:]
    passed = []
    for q, t in zip(function.parameters, taken):
        if q.c == "char":
            passed.append(f"ckt_{name}_char_{t.c}({q.name})")
        else:
            passed.append(f"&{q.name}" if t.needs_annotation and not q.needs_annotation else q.name)
    more = len(taken) - len(function.parameters)
    gives = function.result != "void"
    passed += ["&result_"] if gives else passed[len(passed) - more:]
    # Declared first, as _stub says.
    lines = ["EXPORT " + _prototype(function) + ";", "EXPORT " + _prototype(function), "{"]
    lines += [f"\t{function.result} result_ = {{0}};"] if gives else []
    lines += [f"\tstruct ckt_{name}_default *own_ = ckt_{name}_default();",
              f"\tckt_{name}_default_answer(own_, {entry.target}(own_ ? own_->handle : NULL, {', '.join(passed)}));"]
    return lines + (["\treturn result_;"] if gives else []) + ["}", ""]


def stubs(model):
    library = model.library
    lines = [STUBS.format(name=library.name, title=library.title, includes=_includes(library), client=library.client_header)]
    for p in model.generated():
        lines += _stub(model, p)
    for entry in model.entries:
        if entry.kind == "same":
            lines += _same(entry)
        elif entry.kind == "legacy":
            lines += _legacy(model, entry)
    return "\n".join(lines)


def refused(model):
    library = model.library
    lines = [REFUSED.format(name=library.name)]
    names = [e.name for e in model.entries if e.kind in ("unsupported", "unknown")] + list(model.undeclared)
    for name in sorted(names):
        lines += [f"EXPORT int {name}(void)", *refusal(name, f"ckt_{library.name}_unsupported"), ""]
        if library.doubled:
            lines += [f'EXPORT int {library.doubled}{name}(void) __attribute__((alias("{name}")));', ""]
    return "\n".join(lines)


def exported(model):
    names = [e.name for e in model.entries] + list(model.undeclared)
    doubled = [model.library.doubled + name for name in names] if model.library.doubled else []
    return sorted(names + doubled + list(model.library.private))


def version_script(node):
    """Of one of the SONAMEs that the shim stands for: its symbols have the genuine library's version."""
    def emit(model):
        return f"/* Made by rpc/gen: what {node} exports, and nothing else. */\n{node} {{\nglobal:\n" \
            + "".join(f"\t{n};\n" for n in exported(model)) + "local:\n\t*;\n};\n"
    return emit


# ---- The worker

def functions_header(model):
    library = model.library
    types = "\n".join(f"\tCKT_{library.name.upper()}_TYPE_{kind.upper()} = {i}," for i, kind in enumerate(model.kinds(), 1))
    lines = [FUNCTIONS.format(name=library.name, title=library.title, includes=_includes(library), types=types).rstrip("\n")]
    for function in _called(model):
        lines.append(f"\t{function.result} (*{function.name})({function.parameter_list()});")
    lines += ["};", "", f"extern struct ckt_{library.name}_functions ckt_{library.name};",
              f"extern const struct ckt_library_functions ckt_{library.name}_functions;",
              f"extern const struct ckt_proc ckt_{library.name}_procs[];", f"extern const unsigned ckt_{library.name}_proc_count;", "",
              "/* Written by hand in server/worker/libs. */"]
    lines += [f"int ckt_worker_{p.name}(struct ckt_wcall *call);" for p in model.procedures if p.hand]
    return "\n".join(lines) + "\n"


def _called(model):
    """The functions that the worker may call: what the headers declare together."""
    return [f for f in model.headers.functions.values() if not f.apart]


def functions_source(model):
    name = model.library.name
    lines = [f"/* Made by rpc/gen from {model.library.title}'s headers: do not edit. */", f'#include "server/worker/libs/{name}/{name}.h"',
             f'#include "{name}_functions.h"', "", f"struct ckt_{name}_functions ckt_{name};", "", "static const char *const names[] = {"]
    lines += [f'\t"{f.name}",' for f in _called(model)]
    return "\n".join(lines + ["};", "", f"const struct ckt_library_functions ckt_{name}_functions = {{",
                              f"\tnames, (void **)&ckt_{name}, sizeof(names) / sizeof(*names)", "};"]) + "\n"


def _element(q):
    """The type that a pointer parameter points to, without const."""
    t = q.parameter.canonical
    pointee = q.parameter.type.get_pointee().spelling if t.kind.name == "POINTER" else q.parameter.type.element_type.spelling
    return pointee.replace("const ", "", 1) if pointee.startswith("const ") else pointee


def _take(library, p, q):
    """Lines that make the genuine function's argument from the message; the expression to pass."""
    n = q.name
    if q.way == "object":
        return [f"\tstruct ckt_object *v_{n};", f"\tresult_ = ckt_library_take(call, CKT_LIB_{library.name.upper()}, "
                f"CKT_{library.name.upper()}_TYPE_{q.parameter.handle.upper()}, args.{n}, &v_{n});", "\tif (result_)", "\t\treturn result_;"], \
            f"({q.c}){'' if headers_module.is_handle(q.parameter.canonical) else '(uintptr_t)'}v_{n}->real"
    if q.way == "stream":
        return [f"\tCUstream v_{n};", f"\tresult_ = ckt_object_stream(call->worker, args.{n}, &v_{n});", "\tif (result_)", "\t\treturn result_;"], \
            f"({q.c})v_{n}"
    if q.way == "value":
        return [], f"args.{n}" if isinstance(q.type, wire.Struct) else f"({q.c})args.{n}"
    if q.way == "device":
        return [], f"(void *)(uintptr_t)args.{n}"
    if q.way == "in":
        return [f"\t{_element(q)} v_{n} = args.{n};" if isinstance(q.type, wire.Struct) else f"\t{_element(q)} v_{n} = ({_element(q)})args.{n};"], f"&v_{n}"
    if q.way == "out" and q.place:
        return [f"\t{_element(q)} *at_{n} = {q.place};", f"\tmemset(at_{n}, 0, sizeof(*at_{n}));"], f"at_{n}"
    if q.way == "out":
        return [f"\t{_element(q)} v_{n};", f"\tmemset(&v_{n}, 0, sizeof(v_{n}));"], f"&v_{n}"
    if q.way == "string":
        return [f"\tCKT_LIBRARY_FREED char *v_{n} = strndup(args.{n}, args.{n}_len);", f"\tif (!v_{n})", "\t\treturn CUDA_ERROR_OUT_OF_MEMORY;"], f"v_{n}"
    if q.way == "in_array":
        return [f"\tCKT_LIBRARY_FREED void *v_{n} = ckt_library_array(args.{n}, args.{n}_len);", f"\tif (!v_{n})",
                "\t\treturn CUDA_ERROR_OUT_OF_MEMORY;"], f"args.{n}_len ? v_{n} : NULL" if q.null else f"v_{n}"
    if p.gives_values:
        given = f"args.{n}" if q.way != "result" else "NULL"
        address = f"args.{n}" if q.way == "result" else f"ckt_library_address(args.{n})"
        return [f"\tvoid *v_{n} = ckt_library_value(&values_, {p.value_place(q)}, {given}, {q.limit}, {address});"], f"v_{n}"
    return [f"\t_Alignas(16) uint8_t v_{n}[{(q.limit + 15) // 16 * 16}];"], f"ckt_library_scalar(v_{n}, args.{n}, {q.limit}, args.pointer_mode)"


def _array_checks(p):
    """What a peer may not say: an array has as many elements of their size as its count says, and a string no end inside."""
    lines = []
    for q in p.of("in_array"):
        size = f"sizeof({_element(q)})" if q.size == f"sizeof(*{q.name})" else q.size
        for value in p.of("value"):
            size = re.sub(rf"\b{value.name}\b", f"args.{value.name}", size)
        maybe = f"args.{q.name}_len && " if q.null else ""
        lines += [f"\tif (args.{q.count} < {1 if q.null else 0} || ({maybe}args.{q.name}_len != (uint64_t)args.{q.count} * ({size})))",
                  "\t\treturn CKT_WCALL_GARBAGE;"]
    for q in p.of("string"):
        lines += [f"\tif (memchr(args.{q.name}, 0, args.{q.name}_len))", "\t\treturn CKT_WCALL_GARBAGE;"]
    return lines


def _finish(library, p):
    if p.gives_values:
        return [f"\treturn ckt_library_values_end(call, &values_, v_{p.object.name}, status_, &once_);"]
    if p.batched:
        return ["\treturn ckt_library_done(call, status_, &once_);"]
    lines = [f"\tconst struct ckt_{p.name}_res res_ = {{", "\t\t.status = status_,"]
    lines += [f"\t\t.{q.name} = {f'*at_{q.name}' if q.place else f'v_{q.name}'}," for q in p.of("out")]
    return ["\tcall->status = status_;"] + lines + ["\t};", f"\tckt_{p.name}_res_put(ckt_wcall_results(call, ckt_{p.name}_res_size(&res_)), &res_);", "\treturn CUDA_SUCCESS;"]


_BESIDE_HEAD = """\
struct beside_{p} {{
	struct ckt_library_long_call beside;	/* first */
	int status;
{fields}
}};

static void run_{p}(struct ckt_library_long_call *beside)
{{
	struct beside_{p} *own_ = (struct beside_{p} *)beside;
	own_->status = (int)ckt_{name}.{p}({passed});
	beside->failed = ckt_worker_{name}_out_of_memory(own_->status);
}}

static int done_{p}(struct ckt_library_long_call *beside)
{{
	const struct beside_{p} *own_ = (const struct beside_{p} *)beside;
	struct ckt_wcall *call = beside->call;
	const struct ckt_{p}_res res_ = {{
		.status = own_->status,
{outs}
	}};
	call->status = own_->status;
	ckt_{p}_res_put(ckt_wcall_results(call, ckt_{p}_res_size(&res_)), &res_);
	return CUDA_SUCCESS;
}}

static int handle_{p}(struct ckt_wcall *call)
{{
	static bool once_;
	struct ckt_{p}_args args;
	if (!ckt_{p}_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
{checks}
	if (!ckt_{name}.{p})
		return ckt_library_lacks(call, &once_);
	int result_;
{takes}
	struct beside_{p} *own_ = calloc(1, sizeof(*own_));
	if (!own_)
		return CUDA_ERROR_OUT_OF_MEMORY;
	own_->beside.run = run_{p};
	own_->beside.done = done_{p};
	own_->beside.owner = args.{object};
{sets}
	return ckt_library_long_call(call, &own_->beside);
}}
"""


def _handler_beside(library, p):
    """What takes long: the message is copied, and the genuine library called beside the executor."""
    fields, passed, takes, sets = [], [], [], []
    for q in p.parameters:
        n = q.name
        if q.way == "in_array":
            # As large as any: the struct is freed as one.
            fields += [f"\t_Alignas(16) uint8_t {n}[{q.type.limit}];", f"\tbool has_{n};"]
            sets += [f"\town_->has_{n} = {f'args.{n}_len > 0' if q.null else 'true'};", f"\tif (args.{n}_len)", f"\t\tmemcpy(own_->{n}, args.{n}, args.{n}_len);"]
            passed.append(f"own_->has_{n} ? (void *)own_->{n} : NULL")
        elif q.way == "out" and q.place:
            fields.append(f"\t{_element(q)} *{n};")
            sets += [f"\town_->{n} = {q.place};", f"\tmemset(own_->{n}, 0, sizeof(*own_->{n}));"]
            passed.append(f"own_->{n}")
        elif q.way == "out":
            fields.append(f"\t{_element(q)} {n};")
            passed.append(f"&own_->{n}")
        else:
            take, value = _take(library, p, q)
            takes += take
            fields.append(f"\t{q.c} {n};")
            sets.append(f"\town_->{n} = {value};")
            passed.append(f"own_->{n}")
    return _BESIDE_HEAD.format(name=library.name, p=p.name, object=p.object.name, fields="\n".join(fields), passed=", ".join(passed),
                               outs="\n".join(f"\t\t.{q.name} = {'*' if q.place else ''}own_->{q.name}," for q in p.of("out")), checks="\n".join(_array_checks(p)),
                               takes="\n".join(takes), sets="\n".join(sets)).split("\n")


def _handler(model, p):
    library = model.library
    if p.beside:
        return _handler_beside(library, p)
    name = library.name
    lines = [f"static int handle_{p.name}(struct ckt_wcall *call)", "{", "\tstatic bool once_;", f"\tstruct ckt_{p.name}_args args;",
             f"\tif (!ckt_{p.name}_args_get(&call->args, &args))", "\t\treturn CKT_WCALL_GARBAGE;"] + _array_checks(p)
    lines += [f"\tif (!ckt_{name}.{p.name})", "\t\treturn ckt_library_lacks(call, &once_);"]
    if p.of("object", "stream"):
        lines.append("\tint result_;")
    if p.executes:
        lines.append("\tCUstream stream_;")
    passed, later = {}, []
    for q in p.parameters:
        take, passed[q.name] = _take(library, p, q)
        if q.way in ("object", "stream"):
            lines += take
        else:
            later += take
    if p.gives_values:
        lines += ["\tstruct ckt_library_values values_;", f"\tresult_ = ckt_library_values_begin(call, &values_, args.pointer_mode, {p.values_bytes});",
                  "\tif (result_)", "\t\treturn result_;"]
    lines += later
    if p.has_mode:
        # What comes back to the host is written to memory that the device reaches, so that nobody waits for it here.
        mode = "1" if p.gives_values else "args.pointer_mode"
        lines.append(f"\tckt_worker_{name}_use_pointer_mode(v_{p.object.name}, {mode});")
    elif p.of("in_array") and p.object and any(q.has_mode for q in model.procedures):
        # Arrays of scalars lie on the host, whatever the mode: so does what the library looks for.
        lines.append(f"\tckt_worker_{name}_use_pointer_mode(v_{p.object.name}, 0);")
    called = f"(int)ckt_{name}.{p.name}({', '.join(passed[q.name] for q in p.parameters)})"
    if p.executes:
        lines += ["\tresult_ = ckt_object_stream(call->worker, args.stream, &stream_);", "\tif (result_)", "\t\treturn result_;",
                  f"\tint status_ = ckt_worker_{name}_use_stream(v_{p.object.name}, stream_);", "\tif (!status_)", f"\t\tstatus_ = {called};"]
    else:
        lines.append(f"\tint status_ = {called};")
    return lines + _finish(library, p) + ["}", ""]


_EFFECT_FLAGS = {"creates": "CKT_PROC_CREATES", "destroys": "CKT_PROC_DESTROYS", "sets": "CKT_PROC_SETS",
                 "seals": "CKT_PROC_SETS | CKT_PROC_SEALS", "stateless": "CKT_PROC_STATELESS"}


def _row(model, p):
    flags = [flag for flag, there in (("CKT_PROC_BATCHED", p.batched), ("CKT_PROC_NUMBERED", p.numbered)) if there]
    flags += [_EFFECT_FLAGS[p.effect]] if p.effect else []
    flags += ["CKT_PROC_OBJECT"] if model.begins_with_object(p) else []
    handler = f"{'ckt_worker' if p.hand else 'handle'}_{p.name}"
    offset, size = model.key_place(p) if p.key else (0, 0)
    key = f", 0, {offset}, {size}" if p.key else ""
    return f'\t[{p.number}] = {{"{p.name}", {handler}, {" | ".join(flags) or 0}{key}}},'


def dispatch(model):
    library = model.library
    lines = [DISPATCH.format(name=library.name)]
    for p in model.generated():
        lines += _handler(model, p)
    lines += [f"const struct ckt_proc ckt_{library.name}_procs[] = {{"] + [_row(model, p) for p in model.procedures] + ["};", ""]
    lines.append(f"const unsigned ckt_{library.name}_proc_count = sizeof(ckt_{library.name}_procs) / sizeof(ckt_{library.name}_procs[0]);")
    return "\n".join(lines) + "\n"


# ---- What is there

def coverage(model):
    # A function that is written by hand travels all the same, where it is a procedure.
    travels = {p.name: "batched" if p.batched else "waits" for p in model.procedures}
    functions = [{"name": e.name, "class": travels.get(e.name) or ("unsupported" if e.kind == "unknown" else e.kind), "reason": e.reason} for e in model.entries]
    functions += [{"name": name, "class": "unsupported", "reason": reason} for name, reason in model.undeclared.items()]
    return json.dumps({"library": model.library.name, "functions": sorted(functions, key=lambda row: row["name"])}, indent=1) + "\n"
