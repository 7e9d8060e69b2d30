# SPDX-License-Identifier: Apache-2.0
"""Emits codec_messages.inc: what tests/unit/rpcgen/test_codec.c needs to know about every message, the rpcgen side included.

For each message: functions with untyped pointers around the flat codec, a filler that gives the flat struct and rpcgen's struct the same
random content, and the shape of its bytes, from which the driver builds messages at and over their limits.
"""

import emit_x
import wire

HEAD = '/* Made by rpc/gen for test_codec.c: do not edit. */\n#include "{name}_codec.h"\n#include "{name}_api.h"\n'

_RANDOM = {"u32": "random_u32()", "i32": "(int32_t)random_u32()", "u64": "random_u64()", "i64": "(int64_t)random_u64()",
           "f32": "random_float()", "f64": "random_double()"}


def _fill(t, flat, x, depth=1):
    """Lines that give the lvalues flat and x (rpcgen's) one random value."""
    tab = "\t" * depth
    if isinstance(t, wire.Scalar):
        # The member's own type in cuda.h may be narrower (an enum, a char): both sides get what it holds.
        return [f"{tab}{flat} = {_RANDOM[t.kind]};", f"{tab}{x} = {flat};"]
    if isinstance(t, wire.FixedBytes):
        return [f"{tab}random_bytes({flat}, {t.count});", f"{tab}memcpy({x}, {flat}, {t.count});"]
    if isinstance(t, wire.FixedArray):
        i = f"i{depth}"
        return [f"{tab}for (unsigned {i} = 0; {i} < {t.count}; {i}++) {{"] \
            + _fill(t.element, f"{flat}[{i}]", f"{x}[{i}]", depth + 1) + [f"{tab}}}"]
    if isinstance(t, wire.Struct):
        lines = []
        for m in t.members:
            lines += _fill(m.type, f"{flat}.{m.name}", f"{x}.{emit_x.field_name(m.name)}", depth)
        return lines
    if isinstance(t, wire.Bytes) and t.text:
        return [f"{tab}{flat}_len = random_length({t.limit});", f"{tab}{flat} = {x} = random_text({flat}_len);"]
    if isinstance(t, wire.Bytes):
        name = x.rpartition(".")[2] if "." in x else x.rpartition("->")[2]
        return [f"{tab}{flat}_len = {x}.{name}_len = random_length({t.limit});",
                f"{tab}{x}.{name}_val = random_array({flat}_len, 1);", f"{tab}{flat} = (const uint8_t *){x}.{name}_val;"]
    if isinstance(t, wire.Words):
        name = x.rpartition("->")[2]
        return [f"{tab}{flat}_len = {x}.{name}_len = random_length({t.limit});",
                f"{tab}{x}.{name}_val = random_array({flat}_len, {t.bits // 8});", f"{tab}{flat} = (const uint{t.bits}_t *){x}.{name}_val;"]
    raise AssertionError(t)


def _parts(message):
    rows, fixed = [], 0
    for f in message.fields:
        n = f.type.fixed_size()
        if n is not None:
            fixed += n
            continue
        if fixed:
            rows.append(f"{{{fixed}, 0, 0}}")
            fixed = 0
        rows.append(f"{{0, {f.type.bits // 8 if isinstance(f.type, wire.Words) else 1}, {f.type.limit}}}")
    if fixed:
        rows.append(f"{{{fixed}, 0, 0}}")
    return rows


def _message(message):
    n = message.name
    lines = [f"static void fill_{n}(void *flat_memory, void *x_memory)", "{", f"\tstruct ckt_{n} *flat = flat_memory;",
             f"\tckt_x_{n} *x = x_memory;"]
    for f in message.fields:
        lines += _fill(f.type, f"flat->{f.name}", f"x->{emit_x.field_name(f.name)}")
    lines += ["}", f"static void own_{n}(void *memory)", "{", f"\tstruct ckt_{n} *flat = memory;", "\t(void)flat;"]
    for f in message.fields:
        if isinstance(f.type, wire.Words):
            lines.append(f"\tflat->{f.name} = own_u{f.type.bits}s(flat->{f.name}_xdr, flat->{f.name}_len);")
    lines += ["}", f"static size_t size_{n}(const void *m)", "{", f"\treturn ckt_{n}_size(m);", "}",
              f"static uint8_t *put_{n}(uint8_t *p, const void *m)", "{", f"\treturn ckt_{n}_put(p, m);", "}",
              f"static bool get_{n}(struct ckt_cursor *c, void *m)", "{", f"\treturn ckt_{n}_get(c, m);", "}",
              f"static bool_t xdr_{n}(XDR *xdrs, void *m)", "{", f"\treturn xdr_ckt_x_{n}(xdrs, m);", "}",
              f"static const struct part parts_{n}[] = {{{', '.join(_parts(message))}}};", ""]
    return lines


def messages(model):
    lines = [HEAD.format(name=model.library.name)]
    for message in model.messages():
        lines += _message(message)
    lines.append("static const struct message messages[] = {")
    for m in model.messages():
        n = m.name
        lines.append(f'\t{{"{n}", fill_{n}, own_{n}, size_{n}, put_{n}, get_{n}, xdr_{n}, sizeof(struct ckt_{n}), sizeof(ckt_x_{n}), '
                     f"parts_{n}, sizeof(parts_{n}) / sizeof(parts_{n}[0])}},")
    lines.append("};")
    for p in model.procedures:
        lines.append(f'_Static_assert((unsigned){model.library.enumerator(p.name)} == CKT_X_{p.name.upper()}, "{p.name}");')
    return "\n".join(lines) + "\n"
