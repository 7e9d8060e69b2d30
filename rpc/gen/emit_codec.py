# SPDX-License-Identifier: Apache-2.0
"""Emits LIBRARY_codec.h and LIBRARY_codec.c: a struct and a flat coder for the arguments and the results of every procedure."""

import wire
from emit_x import struct_symbol

HEADER = """\
/*
 * Made by rpc/gen from rpc/api/{name}.api: do not edit.
 *
 * Flat codecs of the {title} program's procedures, on rpc/wire.h.  For every procedure NAME with arguments: struct ckt_NAME_args,
 * and with results struct ckt_NAME_res, each with
 *
 *	_size	exact bytes on the wire; asserts that lengths are within their bounds (the caller's duty)
 *	_put	writes exactly that many bytes and returns the end
 *	_get	decodes one whole message: true where everything was read, within its bounds, and nothing was left over.
 *		*ret is written in part before a failure is seen; never use it after false.
 *
 * Variable fields are a pointer and NAME_len.  After _get the pointers lie in the message and live as long as it does; a string
 * is not NUL-terminated.  Arrays of integers have two pointers: `NAME` for encoding, host byte order, and `NAME_xdr` from decoding,
 * big-endian words in the message to be read with ckt_xdr_u32/u64(NAME_xdr, index).  _get sets `NAME` to NULL, _put ignores `NAME_xdr`.
 * Handles are ids (rpc/handle.h).
 */
#pragma once

#include <assert.h>
{includes}

#include "rpc/codec.h"
"""

# kind -> (expression that puts value v at p, expression that gets)
_PUT = {
    "u32": "ckt_put_u32(p, {v})", "i32": "ckt_put_u32(p, (uint32_t)({v}))",
    "u64": "ckt_put_u64(p, {v})", "i64": "ckt_put_u64(p, (uint64_t)({v}))",
    "f32": "ckt_codec_put_f32(p, {v})", "f64": "ckt_codec_put_f64(p, {v})",
}
_GET = {
    "u32": "ckt_get_u32(c)", "i32": "(int32_t)ckt_get_u32(c)",
    "u64": "ckt_get_u64(c)", "i64": "(int64_t)ckt_get_u64(c)",
    "f32": "ckt_codec_get_f32(c)", "f64": "ckt_codec_get_f64(c)",
}


def _declare(member):
    t, n = member.type, member.name
    if isinstance(t, wire.Scalar):
        return [f"\t{t.c} {n};"]
    if isinstance(t, wire.Bytes):
        kind = "char" if t.text else "uint8_t"
        return [f"\tconst {kind} *{n};\t/* {n}_len <= {t.limit} */", f"\tuint32_t {n}_len;"]
    if isinstance(t, wire.Words):
        return [f"\tconst uint{t.bits}_t *{n};\t/* {n}_len <= {t.limit} */", f"\tconst uint8_t *{n}_xdr;", f"\tuint32_t {n}_len;"]
    if isinstance(t, wire.FixedBytes):
        return [f"\tuint8_t {n}[{t.count}];"]
    if isinstance(t, wire.Struct):
        return [f"\t{t.c} {n};"]
    raise AssertionError(f"no field of type {t}")


def _put(library, t, value, depth=1):
    tab = "\t" * depth
    if isinstance(t, wire.Scalar):
        return [f"{tab}p = {_PUT[t.kind].format(v=value)};"]
    if isinstance(t, wire.Bytes):
        return [f"{tab}p = ckt_put_opaque(p, {value}, {value}_len);"]
    if isinstance(t, wire.Words):
        return [f"{tab}p = ckt_codec_put_u{t.bits}s(p, {value}, {value}_len);"]
    if isinstance(t, wire.FixedBytes):
        return [f"{tab}p = ckt_put_fixed(p, {value}, {t.count});"]
    if isinstance(t, wire.FixedArray):
        i = f"i{depth}"
        return [f"{tab}for (unsigned {i} = 0; {i} < {t.count}; {i}++) {{"] + _put(library, t.element, f"{value}[{i}]", depth + 1) + [f"{tab}}}"]
    if isinstance(t, wire.Struct):
        return [f"{tab}p = ckt_{library.name}_put_{struct_symbol(t)}(p, &{value});"]
    raise AssertionError(t)


def _get(library, t, target, depth=1, cast=None):
    tab = "\t" * depth
    if isinstance(t, wire.Scalar):
        return [f"{tab}{target} = {f'({cast})' if cast else ''}{_GET[t.kind]};"]
    if isinstance(t, wire.Bytes):
        return [f"{tab}{target} = {'(const char *)' if t.text else ''}ckt_get_opaque(c, {t.limit}, &{target}_len);"]
    if isinstance(t, wire.Words):
        return [f"{tab}{target} = NULL;", f"{tab}{target}_xdr = ckt_codec_get_words(c, {t.limit}, {t.bits // 8}, &{target}_len);"]
    if isinstance(t, wire.FixedBytes):
        return [f"{tab}{{", f"{tab}\tconst uint8_t *bytes = ckt_get_fixed(c, {t.count});", f"{tab}\tif (bytes)",
                f"{tab}\t\tmemcpy({target}, bytes, {t.count});", f"{tab}}}"]
    if isinstance(t, wire.FixedArray):
        i = f"i{depth}"
        return [f"{tab}for (unsigned {i} = 0; {i} < {t.count}; {i}++) {{"] \
            + _get(library, t.element, f"{target}[{i}]", depth + 1, cast) + [f"{tab}}}"]
    if isinstance(t, wire.Struct):
        return [f"{tab}ckt_{library.name}_get_{struct_symbol(t)}(c, &{target});"]
    raise AssertionError(t)


def _struct_codec(library, struct):
    name = struct_symbol(struct)
    lines = ["", f"static inline uint8_t *ckt_{library.name}_put_{name}(uint8_t *p, const {struct.c} *v)", "{"]
    for m in struct.members:
        lines += _put(library, m.type, f"v->{m.name}")
    # Padding must not hold what the stack held before.
    lines += ["\treturn p;", "}", "", f"static inline void ckt_{library.name}_get_{name}(struct ckt_cursor *c, {struct.c} *ret)", "{",
              "\tmemset(ret, 0, sizeof(*ret));"]
    for m in struct.members:
        lines += _get(library, m.type, f"ret->{m.name}", cast=m.c)
    return lines + ["}"]


def _size_body(message):
    fixed, variable, checks = 0, [], []
    for f in message.fields:
        n = f.type.fixed_size()
        if n is not None:
            fixed += n
            continue
        fixed += 4
        checks.append(f"\tassert(m->{f.name}_len <= {f.type.limit});")
        variable.append(f"ckt_padded(m->{f.name}_len)" if isinstance(f.type, wire.Bytes)
                        else f"(size_t)m->{f.name}_len * {f.type.bits // 8}")
    if not variable:
        return ["\t(void)m;", f"\treturn {fixed};"]
    return checks + [f"\treturn {' + '.join([str(fixed)] + variable)};"]


def _message(library, message):
    name = f"ckt_{message.name}"
    lines = ["", f"struct {name} {{"]
    for f in message.fields:
        lines += _declare(f)
    lines += ["};", "", f"static inline size_t {name}_size(const struct {name} *m)", "{"] + _size_body(message) + ["}", ""]
    lines += [f"static inline uint8_t *{name}_put(uint8_t *p, const struct {name} *m)", "{"]
    for f in message.fields:
        lines += _put(library, f.type, f"m->{f.name}")
    lines += ["\treturn p;", "}", "", f"static inline bool {name}_get(struct ckt_cursor *c, struct {name} *ret)", "{"]
    for f in message.fields:
        lines += _get(library, f.type, f"ret->{f.name}")
    return lines + ["\treturn ckt_cursor_done(c);", "}"]


def header(model):
    library = model.library
    includes = "\n".join(f"#include <{name}>" for name in library.codec_includes)
    lines = [HEADER.format(name=library.name, title=library.title, includes=includes), "/* The program's procedures. */", "enum {"]
    lines += [f"\t{library.enumerator(p.name)} = {p.number}," for p in model.procedures]
    lines += ["};", "", "/* Bounds of the variable fields: CKT_PROCEDURE_FIELD_MAX, of results CKT_PROCEDURE_RES_FIELD_MAX. */", "enum {"]
    for p in model.procedures:
        for message, infix in ((p.args, ""), (p.results, "RES_")):
            for f in message.fields if message else []:
                if f.type.fixed_size() is None:
                    lines.append(f"\tCKT_{p.name.upper()}_{infix}{f.name.upper()}_MAX = {f.type.limit},")
    lines += ["};", "", "/* The procedure's name in the table, NULL where there is none of that number. */",
              f"const char *ckt_{library.name}_proc_name(uint32_t proc);"]
    for struct in wire.structs_of(model.messages()):
        lines += _struct_codec(library, struct)
    for message in model.messages():
        lines += _message(library, message)
    return "\n".join(lines) + "\n"


def source(model):
    name = model.library.name
    lines = [f"/* Made by rpc/gen from rpc/api/{name}.api: do not edit. */", f'#include "{name}_codec.h"', "",
             "static const char *const names[] = {"]
    lines += [f'\t[{p.number}] = "{p.name}",' for p in model.procedures]
    lines += ["};", "", f"const char *ckt_{name}_proc_name(uint32_t proc)", "{",
              "\treturn proc < sizeof(names) / sizeof(names[0]) ? names[proc] : NULL;", "}"]
    return "\n".join(lines) + "\n"
