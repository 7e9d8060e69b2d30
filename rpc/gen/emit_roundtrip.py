# SPDX-License-Identifier: Apache-2.0
"""Emits NAME_roundtrip.inc: a double of a forwarded library that writes down what it is called with, and for every generated function a
test that calls the shim's and compares.  tests/unit/libs/roundtrip.h has what both sides use.

Of each function: every parameter with a value of its own; both pointer modes; no pointer; the longest arrays; a status that is not 0; each
pointer that must not be NULL as NULL.  Of the API without handles: that its functions call the others with the same.
"""

import headers as headers_module
import wire

HEAD = "/* Made by rpc/gen for the tests: do not edit. */\n"


def _double(p):
    parameters = p.function.parameter_list()
    # Some are declared in C++ alone.
    lines = [f"{p.function.result} {p.name}({parameters});", f"static {p.function.result} double_{p.name}({parameters})", "{", f'\tdouble_begin("{p.name}");']
    for q in p.parameters:
        n = q.name
        if q.way == "device":
            lines.append(f"\tdouble_address({n});")
        elif q.way in ("object", "stream", "value"):
            lines.append(f"\tdouble_put(&{n}, sizeof({n}));")
        elif q.way == "scalar":
            lines.append(f"\tdouble_scalar({n}, {q.size});")
        elif q.way == "in_array":
            lines += [f"\tif ({n})"] if q.null else []
            lines.append(f"\tdouble_put({n}, (size_t)({q.size}) * (size_t){q.count});")
        elif q.way == "in":
            lines.append(f"\tdouble_put({n}, sizeof(*{n}));")
        elif q.way == "string":
            lines.append(f"\tdouble_put({n}, strlen({n}));")
        elif q.way == "update":
            lines.append(f"\tdouble_scalar({n}, {q.size});")
        elif q.way == "result":
            lines.append(f"\tdouble_place({n});")
    for i, q in enumerate(p.of("result", "update")):
        lines.append(f"\tdouble_give({q.name}, {q.size}, {i});")
    for i, q in enumerate(p.of("out")):
        lines.append(f"\tdouble_out({q.name}, sizeof(*{q.name}), {i});")
    return lines + [f"\treturn ({p.function.result})double_end();", "}", ""]


def _value(p, q, index):
    """A value for the parameter that passes the table's checks."""
    counts = {r.count: r.limit for r in p.of("in_array")}
    if q.name in counts:
        counted = [r for r in p.of("in_array") if r.count == q.name]
        least = int(any(r.null for r in counted))
        return f"({q.c})test_count({least}, {min(r.limit for r in counted)})"
    if q.parameter.canonical.kind.name == "ENUM":
        return f'({q.c})test_enum("{q.c}")'
    return f'({q.c})test_number("{q.name}", {index})'


def _pointee(q):
    """The C type that a pointer of the function points to, without const: void as bytes."""
    t = q.parameter.type
    spelling = (t.get_pointee() if t.get_canonical().kind.name == "POINTER" else t.element_type).spelling
    spelling = spelling.replace("const ", "")
    return "uint8_t" if spelling == "void" else spelling


def _declare(p, q, index):
    n = q.name
    if q.way == "object":
        return [f"\t{q.c} {n} = test_object_{q.parameter.handle}();"]
    if q.way == "stream":
        return [f"\t{q.c} {n} = test_stream();"]
    if q.way == "value":
        if isinstance(q.type, wire.Struct):
            return [f"\t{q.c} {n};", f"\ttest_fill(&{n}, sizeof({n}), {index});"]
        return [f"\t{q.c} {n} = {_value(p, q, index)};"]
    if q.way == "device":
        return [f"\tvoid *{n} = test_device({index});"]
    if q.way == "string":
        return [f"\tconst char *{n} = test_string({index}, {q.limit});"]
    if q.way == "in_array":
        null = "test_pass == PASS_NULL ? NULL : " if q.null else ""
        return [f"\t{_pointee(q)} *{n} = {null}test_array({index}, {q.type.limit});"]
    if q.way in ("scalar", "update"):
        null = "test_pass == PASS_NULL ? NULL : " if q.null else ""
        return [f"\t{_pointee(q)} *{n} = {null}test_scalar({index});"]
    return [f"\t{_pointee(q)} *{n} = test_place({index});"]


def _expect(q):
    n = q.name
    if q.way == "object":
        return f"\texpect_object({n});"
    if q.way == "stream":
        return "\texpect_stream();"
    if q.way in ("value", "device"):
        return f"\texpect_put(&{n}, sizeof({n}));"
    if q.way in ("scalar", "update"):
        return f"\texpect_scalar({n}, {q.size});"
    if q.way == "in_array":
        return (f"\tif ({n})\n\t" if q.null else "") + f"\texpect_put({n}, (size_t)({q.size}) * (size_t){q.count});"
    if q.way == "in":
        return f"\texpect_put({n}, sizeof(*{n}));"
    if q.way == "string":
        return f"\texpect_put({n}, strlen({n}));"
    if q.way == "result":
        return f"\texpect_place({n});"
    return None


def _call(p, null=None):
    def passed(q):
        if q.name != null:
            return q.name
        return "NULL" if q.way != "object" or headers_module.is_handle(q.parameter.canonical) else "0"

    return f"{p.name}(" + ", ".join(map(passed, p.parameters)) + ")"


def _test(p):
    lines = [f"static void test_{p.name}(void)", "{", f'\ttest_begin("{p.name}");']
    for i, q in enumerate(p.parameters):
        lines += _declare(p, q, i + 1)
    lines += [line for line in map(_expect, p.parameters) if line]
    waits = "test_waits_for_values()" if p.gives_values else "false" if p.batched else "true"
    lines.append(f"\ttest_learned({_call(p)});" if p.learns else f"\ttest_called({_call(p)}, {waits});")
    for i, q in enumerate(p.of("result", "update")):
        lines.append(f"\ttest_given({q.name}, {q.size}, {i});")
    for i, q in enumerate(p.of("out")):
        lines.append(f"\ttest_out({q.name}, sizeof(*{q.name}), {i});")
    for q in p.of("scalar", "result", "update", "in", "out", "string"):
        if not q.null:
            lines.append(f"\ttest_refused({_call(p, q.name)});")
    if p.of("object"):
        lines.append(f"\ttest_no_object({_call(p, p.object.name)});")
    return lines + ["}", ""]


def _legacy_test(entry, p):
    """Of a function without a handle: the double of the one that it stands on is called as that one's own test says, with the handle of the
    context and what the function was given in its own way."""
    given = entry.function.parameters
    name = f"{entry.name}_legacy"
    lines = [f"{entry.function.result} {entry.name}({entry.function.parameter_list()});", f"static void test_{name}(void)", "{",
             f'\ttest_begin("{p.name}");', f"\t{p.object.c} {p.object.name} = test_default();"]
    rest = [q for q in p.parameters if q is not p.object]
    for i, q in enumerate(rest[:len(given)]):
        lines += _declare(p, q, i + 1)
    gives = entry.function.result != "void"
    for q, again in zip(rest[len(given):], rest[len(given) - (len(rest) - len(given)):]):
        lines.append(f"\t{entry.function.result} given = {{0}}, *{q.name} = &given;" if gives else f"\t__typeof__({again.name}) {q.name} = {again.name};")
    lines += [line for line in map(_expect, p.parameters) if line]
    passed = []
    for q, t in zip(given, rest):
        if q.c == "char":
            passed.append(f'test_char("{t.c}", {t.name})')
        else:
            passed.append(f"*{t.name}" if t.way in ("scalar", "update") and not q.needs_annotation else t.name)
    call = f"{entry.name}({', '.join(passed)})"
    waits = "true" if p.gives_values else "false"
    lines.append(f"\ttest_called(({'given = ' + call if gives else call}, test_default_status()), {waits});")
    for i, q in enumerate(p.of("result", "update")):
        if gives or given[rest.index(q)].needs_annotation:
            lines.append(f"\ttest_given({q.name}, {q.size}, {i});")
    return lines + ["}", ""]


def _legacy_tests(model):
    entries = [e for e in model.entries if e.kind == "legacy"]
    if not entries:
        return []
    procedures = {p.name: p for p in model.generated()}
    lines = []
    for e in entries:
        lines += _legacy_test(e, procedures[e.target])
    lines += ["static const struct roundtrip legacies[] = {"]
    return lines + [f'\t{{"{e.name}", test_{e.name}_legacy}},' for e in entries] + ["};", ""]


def tests(model):
    name = model.library.name
    lines = [HEAD]
    for p in model.generated():
        lines += _double(p) + _test(p)
    lines += _legacy_tests(model)
    lines += ["static const struct roundtrip roundtrips[] = {"]
    lines += [f'\t{{"{p.name}", test_{p.name}}},' for p in model.generated()] + ["};", "", "static void double_install(void)", "{"]
    lines += [f"\tckt_{name}.{p.name} = double_{p.name};" for p in model.generated()]
    return "\n".join(lines + ["}"]) + "\n"
