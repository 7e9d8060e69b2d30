# SPDX-License-Identifier: Apache-2.0
"""Emits LIBRARY_api.x, the library's program in RPC language, for rpcgen: the definition of the wire that the flat codecs are proved against."""

import wire

# Words of the RPC language that a field cannot be called.
RESERVED = {"bool", "case", "char", "const", "default", "double", "enum", "float", "hyper", "int", "long", "opaque", "program", "quadruple",
            "short", "string", "struct", "switch", "typedef", "union", "unsigned", "version", "void"}

HEAD = """\
/*
 * Made by rpc/gen from rpc/api/{name}.api: do not edit.
 *
 * The {title} program.  A batched call is never answered (its result here is void).  The answer of any other is the function's {result}
 * and, only where that is 0, the results.  Message headers: docs/wire.md.
 */
"""


def field_name(name):
    return name + "_" if name in RESERVED else name


def _declare(name, t):
    name = field_name(name)
    if isinstance(t, wire.Scalar):
        return f"{t.xdr} {name};"
    if isinstance(t, wire.Bytes):
        return f"{'string' if t.text else 'opaque'} {name}<{t.limit}>;"
    if isinstance(t, wire.Words):
        return f"unsigned {'int' if t.bits == 32 else 'hyper'} {name}<{t.limit}>;"
    if isinstance(t, wire.FixedBytes):
        return f"opaque {name}[{t.count}];"
    if isinstance(t, wire.Struct):
        return f"ckt_x_{struct_symbol(t)} {name};"
    if isinstance(t, wire.FixedArray) and isinstance(t.element, (wire.Scalar, wire.Struct)):
        kind = t.element.xdr if isinstance(t.element, wire.Scalar) else f"ckt_x_{struct_symbol(t.element)}"
        return f"{kind} {name}[{t.count}];"
    raise AssertionError(f"the RPC language has no {t}")


def struct_symbol(struct):
    return struct.c.replace("struct ", "")


def _struct(name, members):
    return [f"struct ckt_x_{name} {{"] + [f"\t{_declare(m.name, m.type)}" for m in members] + ["};", ""]


def specification(model):
    library = model.library
    lines = [HEAD.format(name=library.name, title=library.title, result=library.result)]
    for struct in wire.structs_of(model.messages()):
        lines += _struct(struct_symbol(struct), struct.members)
    for message in model.messages():
        lines += _struct(message.name, message.fields)
    for p in model.procedures:
        if p.results:
            lines += [f"union ckt_x_{p.name}_reply switch (int result) {{", "case 0:", f"\tckt_x_{p.name}_res results;", "default:",
                      "\tvoid;", "};", ""]
    lines += [f"program CRICKET_{library.name.upper()}_PROG {{", f"\tversion CRICKET_{library.name.upper()}_VERS {{"]
    for p in model.procedures:
        result = "void" if p.batched else f"ckt_x_{p.name}_reply" if p.results else "int"
        lines.append(f"\t\t{result} CKT_X_{p.name.upper()}({f'ckt_x_{p.name}_args' if p.args else 'void'}) = {p.number};")
    return "\n".join(lines + ["\t} = 1;", f"}} = {library.program:#x};"]) + "\n"
